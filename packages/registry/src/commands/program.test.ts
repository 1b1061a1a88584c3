import { offersFor } from '@skep/core/command/completion.ts';
import { runProgram } from '@skep/core/command/program.ts';
import type { Terminal } from '@skep/core/command/terminal.ts';
import { expect, test } from 'vitest';
import type { Host } from './command.ts';
import { REGISTRY } from './program.ts';

/** Runs a command line that touches nothing but the terminal. */
async function run(...argv: string[]): Promise<{ status: number; out: string; err: string }> {
  const said = { out: '', err: '' };
  const terminal: Terminal = {
    out: (text) => void (said.out += text),
    err: (text) => void (said.err += text),
    interactive: false,
    liveErr: false,
    liveOut: false,
    colorOut: false,
    colorErr: false,
    width: 100,
    widthOut: Infinity,
  };
  const host = { terminal, env: {} } as Host;
  const status = await runProgram(REGISTRY, argv, { terminal, env: {}, open: () => host });
  return { status, ...said };
}

test.each(REGISTRY.commands.map(({ name }) => name))('%s says how it is used', async (name) => {
  const { status, out } = await run(name, '--help');
  expect(status).toBe(0);
  expect(out).toContain(`Usage: skep-registry ${name}`);
  expect(out).toContain('--debug');
});

test('without a command, what there is is shown, and what only scripts call is not', async () => {
  const { out } = await run();
  expect(out).toContain('Commands:\n  serve       serve the registries of a configuration file\n');
  expect(out).toContain('  completion  print');
  expect(out).not.toContain('  complete ');
});

test.each(['serve', 'explain', 'migrate up', 'prime-db app'])('%s needs a configuration', async (line) => {
  const { status, err } = await run(...line.split(' '));
  expect(status).toBe(1);
  expect(err).toContain('Error: the flag "--config" is missing');
});

test('--debug may stand before the command', async () => {
  expect((await run('--debug', 'serve')).err).toContain('code: usage/missing-argument');
});

test.each([
  [[''], ['serve', 'validate', 'explain', 'migrate', 'prime-db', 'completion', 'version']],
  [['mig'], ['migrate']],
  [
    ['serve', '--auth-mode', ''],
    ['anonymous', 'oauth'],
  ],
  [
    ['completion', ''],
    ['bash', 'zsh', 'fish'],
  ],
])('completion offers for %j are %j', async (words, expected) => {
  const offers = await offersFor(words, REGISTRY, {} as Host);
  expect(offers.map(({ value }) => value).toSorted()).toEqual(expected.toSorted());
});

test.each(['bash', 'zsh', 'fish'])(
  'the script for %s asks this program, by an identifier of its own',
  async (shell) => {
    const { out } = await run('completion', shell);
    expect(out).toContain('command skep-registry complete -- ');
    expect(out).toContain('_skep_registry');
    expect(out).not.toMatch(/\bskep\b(?!-registry)|NAME|IDENT/);
  },
);
