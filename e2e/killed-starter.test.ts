import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { component, title } from './require.ts';

const sandbox = await component('sandbox');
const ORDINARY = 1234;
/** Only root can become another user. */
const users: [string, string[]][] =
  process.getuid?.() === 0
    ? [
        ['root', []],
        ['an ordinary user', ['setpriv', `--reuid=${ORDINARY}`, `--regid=${ORDINARY}`, '--clear-groups', '--']], // prettier-ignore
      ]
    : [['an ordinary user', []]];

describe.skipIf(!sandbox.available).each(users)(
  title('what is left of a sandbox that %s was starting when killed', sandbox),
  (_who, become) => {
    let directory: string;
    beforeEach(() => {
      directory = mkdtempSync(path.join(tmpdir(), 'skep-starter-'));
      if (become.length > 0) chownSync(directory, ORDINARY, ORDINARY);
    });
    afterEach(() => rmSync(directory, { recursive: true }));

    /** Everything that the program in the sandbox says, its starter killed once it has begun it, and then `after` done. */
    async function said(what: 'go' | 'hold' | 'long', after: () => void = () => {}): Promise<string> {
      const starter = path.join(import.meta.dirname, 'sandbox-starter.ts');
      const command = [...become, process.execPath, starter, directory, what];
      const { PATH } = process.env;
      const child = spawn('env', command, { env: { PATH }, stdio: ['ignore', 'pipe', 'inherit'] });
      let all = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => (all += text));
      const over = once(child.stdout, 'end');
      while (!all.includes(what === 'go' ? 'Seccomp:' : 'begun')) await once(child.stdout, 'data');
      child.kill('SIGKILL');
      await once(child, 'exit');
      after();
      // Nothing that runs has it open any more.
      await over;
      return all.replace('begun\n', '');
    }

    test('is its program, once that was let go', async () => {
      expect(await said('go')).toContain('Seccomp:\t2');
    });

    test('is nothing that runs, while it is held', async () => {
      expect(await said('hold')).toBe('');
    });

    test('is nothing that runs, when bubblewrap was told a part of what it is to do', async () => {
      const gate = path.join(directory, 'gate');
      execFileSync('mkfifo', ['-m', '666', gate]);
      expect(await said('long', () => writeFileSync(gate, 'go\n'))).toBe('');
    });
  },
);
