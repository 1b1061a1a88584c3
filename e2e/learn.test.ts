import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { npmRegistryWith, type NpmRegistry } from './fixtures/npm-registry.ts';
import { PRIVATE, PUBLIC, smallInternet, type SmallInternet } from './fixtures/small-internet.ts';
import { component, title } from './require.ts';
import { ended, openUser, printed, USERS, type SkepResult, type TestUser } from './skep.ts';

// A server that is watched while it works, and then runs with the profile that was proposed for it.

const sandbox = await component('sandbox');
const strace = await component('strace');
const asRoot = process.getuid?.() === 0;

const PACKAGE = 'skep-test-learn';
/** At its start reads one file of a mount, writes to another, loads a page, and tries what it was not given. */
const WORKING_SERVER = `#!/usr/bin/env node
import { createInterface } from 'node:readline';
import { execFileSync } from 'node:child_process';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
const [paper, key] = process.argv.slice(2);
const read = (file) => { try { return readFileSync(file, 'utf8'); } catch (error) { return error.code; } };
const load = (url) => fetch(url).then((answer) => answer.text()).catch(({ cause }) => cause?.code ?? 'failed');
const answers = {
  initialize: { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 'working', version: '1' } },
};
const work = async () => {
  const did = {
    notes: read('/notes/a.txt'),
    byAnother: execFileSync('cat', ['/notes/a.txt'], { encoding: 'utf8' }),
    page: await load('http://api.example/'),
    gone: await load('http://gone.example/'),
    privately: String(await load('http://intern.example/')).slice(0, 20),
    paper: read(paper),
    key: read(key),
  };
  writeFileSync('/out/.new', JSON.stringify(did));
  renameSync('/out/.new', '/out/did.json');
};
const worked = work();
createInterface({ input: process.stdin }).on('line', async (line) => {
  const { id, method } = JSON.parse(line);
  await worked;
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: answers[method] ?? {} }));
});
`;

// Only root can make such a machine; who runs the server on it is another matter.
describe.skipIf(!sandbox.available || !strace.available || !asRoot).each(USERS)(
  title('a server that learns in the sandbox of %s', sandbox, strace),
  (_who, uid) => {
    let internet: SmallInternet;
    let registry: NpmRegistry;
    let user: TestUser;
    beforeAll(async () => {
      registry = await npmRegistryWith(PACKAGE, WORKING_SERVER);
      internet = await smallInternet({ 'api.example': [[PUBLIC]], 'intern.example': [[PRIVATE]] });
    });
    afterAll(async () => {
      internet[Symbol.dispose]();
      await registry[Symbol.asyncDispose]();
    });
    beforeEach(() => {
      user = openUser({ SKEP_RUNTIME: 'sandbox' }, uid);
    });
    afterEach(() => user.end());

    const at = (...parts: string[]): string => path.join(user.dir, ...parts);
    function make(directory: string, name: string, content: string): string {
      mkdirSync(at(directory));
      writeFileSync(at(directory, name), content);
      // As root the server runs as a user of its own.
      chmodSync(at(directory), 0o777);
      return at(directory, name);
    }

    /** On the machine of the small internet, until it can be used and Ctrl-C is pressed. */
    async function used(args: readonly string[]): Promise<SkepResult> {
      const child = user.start(['run', ...args], {
        through: (command) => internet.through(command),
        env: { npm_config_registry: registry.url },
      });
      const result = ended(child);
      await printed(child, 'Press Ctrl-C');
      child.kill('SIGINT');
      const done = await result;
      expect(done.code, done.stderr).toBe(0);
      return done;
    }
    const did = (): unknown => JSON.parse(readFileSync(at('out', 'did.json'), 'utf8'));

    test('does under the profile that was proposed all that it did, has what it lacked, and reaches no more', async () => {
      const target = `npx://${PACKAGE}@1.0.0`;
      // The registry is on this machine, and no other: from here on the package is there.
      const fetched = await user.skep(['run', target, '--name', 'keeper', '--no-check', '--', '/x', '/y'], {
        env: { npm_config_registry: registry.url },
      });
      expect(fetched.stderr).toContain('Fetching');
      make('notes', 'a.txt', 'buy milk');
      make('out', 'old', '');
      make('spare', 'x', '');
      const paper = make('papers', 'p.txt', 'paper');
      const key = make('keys', 'id_rsa', 'secret');
      const args = ['--name', 'learner', '--', paper, key];
      const mounts = ['notes:/notes', 'out:/out', 'spare:/spare'].flatMap((one) => ['-v', at(one)]);
      const learned = await used([target, '--learn', ...mounts, ...args]);
      expect(did()).toMatchObject({
        notes: 'buy milk',
        byAnother: 'buy milk',
        page: `api.example at ${PUBLIC} 80`,
        paper: 'ENOENT',
        key: 'ENOENT',
      });

      expect(learned.stderr).toMatch(/^ {2}Reaches: +api\.example:80 × 1$/m);
      expect(learned.stderr).toMatch(/^ {2}Refused: +intern\.example:80 × 1$/m);
      expect(learned.stderr).toMatch(/^ {2}Not found: +gone\.example:80 × 1$/m);
      expect(learned.stderr).toContain(`Not proposed: ${key}\n`);
      expect(learned.stderr).not.toContain('Not seen');
      const file = at('learner.profile.json');
      expect(statSync(file).mode & 0o777).toBe(0o600);
      expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({
        name: 'learner',
        read: [`${at('notes')}:/notes`, `${paper}:${paper}`],
        write: [`${at('out')}:/out`],
        network: { outbound: { insecure_allow_all: false, allow_host: ['api.example'], allow_port: [80] } },
      });
      expect(user.leftFiles().filter((one) => one.includes('learner.json'))).toEqual([]);

      const [, line = ''] = /^skep run (.*)$/m.exec(learned.stderr) ?? [];
      expect(line).toContain('--permission-profile ./learner.profile.json --isolate-network');
      rmSync(at('out', 'did.json'));
      await used(['--foreground', ...line.split(' ')]);
      expect(did()).toMatchObject({
        notes: 'buy milk',
        byAnother: 'buy milk',
        page: `api.example at ${PUBLIC} 80`,
        paper: 'paper',
        key: 'ENOENT',
      });
      expect(existsSync(file)).toBe(true);
    });

    test('runs on when the command that watches it is killed', async () => {
      const target = `npx://${PACKAGE}`;
      make('notes', 'a.txt', 'buy milk');
      make('out', 'old', '');
      const child = user.start(
        ['run', target, '--learn', '--name', 'left', '-v', `${at('notes')}:/notes`, '-v', `${at('out')}:/out`, '--', '/x', '/y'], // prettier-ignore
        { env: { npm_config_registry: registry.url } },
      );
      const finished = ended(child);
      await printed(child, 'Press Ctrl-C');
      child.kill('SIGKILL');
      await finished;
      const listed = async (): Promise<unknown> =>
        JSON.parse((await user.skep(['list', '--format', 'json'])).stdout) as unknown;
      await expect.poll(listed, { timeout: 20_000 }).toMatchObject([{ name: 'left', status: 'running' }]);
      const restarted = (await user.skep(['logs', 'left', '--proxy'])).stdout;
      expect(restarted).not.toContain('restart');
    });
  },
);
