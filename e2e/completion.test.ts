import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { programFile } from './registry/process.ts';
import { openUser, skepEntry, type TestUser } from './skep.ts';

let user: TestUser;
let script: string;
beforeAll(async () => {
  user = openUser({ SKEP_RUNTIME: 'docker', DOCKER_HOST: 'unix:///nonexistent/engine.sock' });
  const bin = path.join(user.dir, 'bin');
  mkdirSync(bin);
  writeFileSync(path.join(bin, 'skep'), `#!/bin/sh\nexec '${process.execPath}' -- '${skepEntry()}' "$@"\n`);
  chmodSync(path.join(bin, 'skep'), 0o755);
  script = path.join(user.dir, 'skep.bash');
  writeFileSync(script, (await user.skep(['completion', 'bash'])).stdout);
});
afterAll(() => user.end());

const has = (program: string, ...args: string[]): boolean => spawnSync(program, args).status === 0;
const bash = has('bash', '--version') ? '' : ' (skipped: bash is missing)';
const terminal = bash === '' && has('script', '--version') ? '' : ' (skipped: bash or script(1) is missing)';

const env = () => ({ ...user.env, PATH: `${path.join(user.dir, 'bin')}:${user.env['PATH'] ?? ''}` });

/** What bash is told when the cursor stands behind `line`, cut into words as bash cuts it. */
function replies(line: string): string[] {
  const words = line.match(/[=:]|[^\s=:]+|\s$/gu) ?? [];
  const last = words.at(-1)?.trim() ?? '';
  const quoted = [...words.slice(0, -1), last].map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
  const program = `source '${script}'; source '${script}'; COMP_LINE="$1"; COMP_POINT=\${#COMP_LINE}
    COMP_WORDS=(${quoted}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _skep_complete skep
    ((\${#COMPREPLY[@]})) && printf '%s\\n' "\${COMPREPLY[@]}"; true`;
  const { stdout, stderr, status } = spawnSync('bash', ['--norc', '-uc', program, 'bash', line], {
    cwd: user.dir,
    env: env(),
    encoding: 'utf8',
  });
  expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
  return stdout.split('\n').filter((one) => one !== '');
}

/** Types into a real bash on a terminal; `\t` is Tab. Resolves with what the terminal showed. */
async function typed(keys: string): Promise<string> {
  const child = spawn('script', ['-qec', 'bash --norc -i', '/dev/null'], { cwd: user.dir, env: env() });
  let shown = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (shown += text));
  child.stdin.write(`source '${script}'\n${keys}\u0015exit\n`);
  await new Promise((resolve) => child.once('close', resolve));
  return shown;
}

describe.skipIf(bash !== '')(`completion in bash${bash}`, () => {
  test.each([
    ['skep sta', ['start', 'status']],
    ['skep registry ', ['list', 'info', 'convert']],
    ['skep run --transport st', ['stdio', 'streamable-http']],
    ['skep run --transport=st', ['stdio', 'streamable-http']],
    ['skep run --transport=', ['stdio', 'streamable-http', 'sse']],
    ['skep run everyth', ['everything']],
    ['skep run npx://x', []],
    ['skep completion z', ['zsh']],
    ['skep run $(touch X) ', []],
    ['skep logs `touch X`', []],
  ])('"%s" gives %j', (line, expected) => {
    expect(replies(line)).toEqual(expected);
    expect(existsSync(path.join(user.dir, 'X'))).toBe(false);
  });
});

describe.skipIf(terminal !== '')(`Tab on a terminal${terminal}`, () => {
  test('completes', async () => {
    expect(await typed('skep versi\t\t\n')).toContain('skep 0.');
  });

  test.each([
    'skep run $(touch X) \t\t',
    'skep run `touch X`\t\t',
    'skep run ";touch X;\t\t',
    'skep $(touch X)\t\t',
  ])('runs nothing of "%s"', async (keys) => {
    await typed(keys);
    expect(existsSync(path.join(user.dir, 'X'))).toBe(false);
  });
});

test.each(['bash', 'zsh', 'fish'])('the script for %s is one that this shell can read', async (shell) => {
  const { stdout } = await user.skep(['completion', shell]);
  expect(stdout).toMatch(/command skep complete -- /u);
  expect(stdout).not.toMatch(/\beval\b/u);
  if (!has(shell, '--version')) return;
  const file = path.join(user.dir, `script.${shell}`);
  writeFileSync(file, stdout);
  expect(spawnSync(shell, ['-n', file]).status).toBe(0);
});

test('skep-registry completes its commands too', async () => {
  const registry = (...args: string[]) =>
    spawnSync(process.execPath, ['--', programFile(), ...args], { encoding: 'utf8' }).stdout;
  expect(registry('completion', 'bash')).toContain(
    'complete -o default -F _skep_registry_complete skep-registry',
  );
  expect(registry('complete', '--', 'mig')).toMatch(/^migrate\t.+\n$/);
});
