import { execFile, execFileSync } from 'node:child_process';
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { GO_SERVER, moduleProxyOf, type ModuleProxy } from './fixtures/module-proxy.ts';
import { component, title } from './require.ts';
import { ask, openUser, USERS, type SkepResult, type TestUser } from './skep.ts';

const sandbox = await component('sandbox');
const go = await component('go');
const there = sandbox.available && go.available;

const NEEDED = { path: 'example.test/needed', files: { 'needed.go': 'package needed\n\nconst It = 1\n' } };
const FILES = {
  'go.mod': 'module example.test/mine\n\ngo 1.16\n\nrequire example.test/needed v1.0.0\n',
  'cmd/server/main.go': GO_SERVER,
  'cmd/server/more.go': 'package main\n\nimport "example.test/needed"\n\nvar _ = needed.It\n',
  'library/library.go': 'package library\n',
  '.git/config': 'token = secret\n',
};

describe.skipIf(!there)(title('a Go project of this machine', sandbox, go), () => {
  describe.each(USERS)('as %s', (_who, uid) => {
    let user: TestUser;
    let proxy: ModuleProxy;
    let project: string;
    beforeAll(async () => {
      user = openUser({ SKEP_RUNTIME: 'sandbox', GONOSUMDB: '*' }, uid);
      project = path.join(user.dir, 'project');
      proxy = await moduleProxyOf([NEEDED]);
    });
    afterAll(async () => {
      await user.end();
      await proxy[Symbol.asyncDispose]();
    });
    beforeEach(async () => {
      rmSync(project, { recursive: true, force: true });
      write(FILES);
      const modules = path.join(user.dir, 'modules');
      const env = {
        ...process.env,
        GOPROXY: proxy.url,
        GONOSUMDB: '*',
        GOPATH: modules,
        GOFLAGS: '-modcacherw',
      };
      await promisify(execFile)('go', ['mod', 'tidy'], { cwd: project, env });
      if (uid !== undefined) execFileSync('chown', ['-R', String(uid), project]);
    });

    function write(files: Readonly<Record<string, string>>): void {
      for (const [name, text] of Object.entries(files)) {
        const file = path.join(project, name);
        mkdirSync(path.dirname(file), { recursive: true });
        writeFileSync(file, text);
      }
    }

    const skep = (...args: readonly string[]): Promise<SkepResult> =>
      user.skep(args, { cwd: project, env: { GOPROXY: proxy.url } });

    async function done(...args: readonly string[]): Promise<SkepResult> {
      const ended = await skep(...args);
      expect(ended.code, ended.stderr).toBe(0);
      return ended;
    }

    async function refused(why: string | RegExp, ...args: readonly string[]): Promise<void> {
      const { code, stderr } = await skep(...args);
      expect(code, stderr).toBe(1);
      expect(stderr).toMatch(why);
    }

    /** Names and times of everything in the project. */
    const untouched = (): readonly string[] =>
      readdirSync(project, { recursive: true, encoding: 'utf8' }).map(
        (name) => `${name} ${statSync(path.join(project, name)).mtimeMs}`,
      );

    // The first stays until the end: with the last workload its cache would go.
    test('runs with the modules that it needs, and is built anew when its sources have changed', async () => {
      const before = untouched();
      const ran = await done('run', 'go://./cmd/server', '--name', 'first');
      expect(await ask(ran.stdout.trim(), 'tools/list')).toHaveProperty('result.tools');
      expect(untouched()).toEqual(before);
      expect(proxy.requests).toContain('example.test/needed/@v/v1.0.0.zip');

      const again = await done('run', 'go://../project/cmd/server', '--name', 'second');
      expect(again.stderr).not.toContain('Building');
      appendFileSync(path.join(project, 'cmd/server/more.go'), '\nfunc init() { println("changed") }\n');
      expect((await done('list', '--check-upgrades', '--format', 'json')).stdout).toContain(
        '"upgrade": "src-',
      );
      const upgraded = await done('upgrade', 'second', '--yes');
      expect(upgraded.stderr).toContain(`Building ${project}/cmd/server`);
      expect((await done('logs', 'second')).stdout).toContain('changed');
      expect((await done('logs', 'first')).stdout).not.toContain('changed');
      await done('rm', 'second');
    }, 300_000);

    test('says what is wrong with a path', async () => {
      await refused(`source path "${project}/absent" does not exist`, 'run', 'go://./absent');
      await refused(/it names several packages/, 'run', 'go://./...');
      await refused(`"${user.dir}" belongs to no Go module`, 'run', 'go://..');
      await refused(`no Go files in ${project}`, 'run', 'go://.');
      await refused(/it is no program \(package main\)/, 'run', 'go://./library');
      write({ 'cmd/server/other.go': 'package other\n' });
      await refused(/found packages main .* and other/, 'run', 'go://./cmd/server');
    });

    test('takes nothing from beside it, whatever its files say', async () => {
      const secret = path.join(user.dir, 'secret.go');
      writeFileSync(secret, 'package main\n\nvar Secret = "TOP-SECRET-42"\n\nfunc broken( {\n');
      symlinkSync(secret, path.join(project, 'cmd/server/linked.go'));
      const { code, stderr } = await skep('run', 'go://./cmd/server', '--name', 'linked');
      expect(code).toBe(1);
      expect(stderr).not.toContain('TOP-SECRET');
      expect(stderr).not.toContain('broken');
      rmSync(path.join(project, 'cmd/server/linked.go'));
      write({ '../beside/go.mod': 'module example.test/needed\n', '../beside/x.go': 'package needed\n\nconst It = 2\n' }); // prettier-ignore
      appendFileSync(path.join(project, 'go.mod'), '\nreplace example.test/needed => ../beside\n');
      await refused(/beside.*no such file/, 'run', 'go://./cmd/server', '--name', 'beside');
    });

    test('is built for an imported configuration only with the word of the person', async () => {
      await done('run', 'go://./cmd/server', '--name', 'mine');
      const file = path.join(user.dir, 'mine.json');
      await done('export', 'mine', file);
      await done('rm', 'mine');
      await refused(`build and run the Go project at "${project}/cmd/server"`, 'run', '--from-config', file);
      const trusted = await done('run', '--from-config', file, '--trust-config');
      expect(trusted.stderr).toContain(`Granted: build and run the Go project at "${project}/cmd/server"`);
      await done('rm', 'mine');
    });
  });
});
