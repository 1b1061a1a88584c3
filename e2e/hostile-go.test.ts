import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { GO_SERVER, moduleProxyOf, type FixtureModule } from './fixtures/module-proxy.ts';
import { component, title } from './require.ts';
import { ask, openUser, USERS, type SkepResult, type TestUser } from './skep.ts';

const sandbox = await component('sandbox');
const go = await component('go');
const there = sandbox.available && go.available;

const EVIL = 'example.test/evil';
/** Its modules are in no checksum database. */
const UNKNOWN = { GONOSUMDB: '*' };

/** Gives one cache the compiled standard library of another. */
function link(from: string, to: string): void {
  const library = path.join(from, 'go-library');
  if (existsSync(library)) execFileSync('cp', ['-al', library, to]);
}

describe.skipIf(!there)(title('fetching a hostile Go package', sandbox, go), () => {
  describe.each(USERS)('as %s', (_who, uid) => {
    let user: TestUser;
    let secrets: string;
    const library = mkdtempSync(path.join(tmpdir(), 'skep-go-library-'));
    afterAll(() => rmSync(library, { recursive: true }));
    beforeEach(() => {
      user = openUser({ SKEP_RUNTIME: 'sandbox', TEST_SECRET: 'in-the-environment' }, uid);
      const cache = path.join(user.dir, 'cache/skep');
      execFileSync('mkdir', ['-p', cache]);
      link(library, cache);
      if (uid !== undefined) execFileSync('chown', [String(uid), path.dirname(cache), cache]);
      secrets = path.join(user.dir, 'private-project');
      mkdirSync(secrets);
      writeFileSync(path.join(secrets, 'go.mod'), 'module example.test/private\n');
      writeFileSync(path.join(secrets, 'secret.go'), 'package private\n\nconst Secret = "TOP-SECRET-42"\n');
      if (uid !== undefined) execFileSync('chown', ['-R', String(uid), secrets]);
    });
    afterEach(async () => {
      // Compiled by the first of them.
      if (readdirSync(library).length === 0) link(path.join(user.dir, 'cache/skep'), library);
      await user.end();
    });

    /** `skep run` of the first module's own package, from a proxy with all of them. */
    async function run(
      modules: readonly FixtureModule[],
      env: Readonly<Record<string, string>> = UNKNOWN,
    ): Promise<SkepResult & { readonly requests: readonly string[] }> {
      await using proxy = await moduleProxyOf(modules);
      const ran = await user.skep(['run', `go://${modules[0]?.path ?? ''}`], {
        env: { GOPROXY: proxy.url, GOFLAGS: `-toolexec=${path.join(user.dir, 'evil.sh')}`, ...env },
      });
      return { ...ran, requests: [...proxy.requests] };
    }

    function expectRefused({ code, stderr }: SkepResult, why: string | RegExp): void {
      expect(code, stderr).toBe(1);
      expect(stderr).toMatch(why);
      const left = user.leftFiles().filter((name) => /packages\/.|runconfigs\/.|sandbox\/./.test(name));
      expect(left).toEqual([]);
    }

    test('gets an honest one with what it needs, whatever the user has set for their own builds', async () => {
      const needed = {
        path: 'example.test/Needed',
        files: { 'needed.go': 'package needed\n\nconst It = 1\n' },
      };
      const honest = {
        path: 'example.test/honest',
        goMod: 'go 1.16\n\nrequire example.test/Needed v1.0.0\n',
        files: {
          'cmd/honest/main.go': GO_SERVER,
          'cmd/honest/more.go': 'package main\n\nimport needed "example.test/Needed"\n\nvar _ = needed.It\n',
        },
      };
      await using proxy = await moduleProxyOf([honest, needed]);
      const env = { ...UNKNOWN, GOPROXY: proxy.url, GOFLAGS: `-toolexec=${path.join(user.dir, 'evil.sh')}` };
      const ran = await user.skep(['run', 'go://example.test/honest/cmd/honest'], { env });
      expect(ran.code, ran.stderr).toBe(0);
      expect(await ask(ran.stdout.trim(), 'tools/list')).toHaveProperty('result.tools');
      expect(ran.stderr).toContain('Fetching example.test/honest/cmd/honest@v1.0.0');
    }, 300_000);

    test('takes no directory of the user for a module', async () => {
      const goMod = `go 1.16\n\nrequire example.test/private v1.0.0\n\nreplace example.test/private => ${secrets}\n`;
      const main =
        'package main\n\nimport "example.test/private"\n\nfunc main() { println(private.Secret) }\n';
      expectRefused(await run([{ path: EVIL, goMod, files: { 'main.go': main } }]), /replace directives/);
    });

    test.each([
      ['compiles no C', '// #cgo LDFLAGS: -fplugin=./x.so\nimport "C"\n\nfunc main() {}\n', /build constraints exclude all Go files/], // prettier-ignore
      ['puts no other file into a program', 'import _ "embed"\n\n//go:embed /etc/hostname\nvar text string\n\nfunc main() {}\n', /invalid pattern syntax/], // prettier-ignore
      ['takes nothing from a repository', 'import _ "127.0.0.1/team/private.git"\n\nfunc main() {}\n', /could not be fetched/], // prettier-ignore
    ])('%s', async (_what, source, why) => {
      const files = { 'main.go': `package main\n\n${source}` };
      expectRefused(await run([{ path: EVIL, files }]), why);
      expect(existsSync(path.join(user.dir, 'code-ran'))).toBe(false);
    });

    test('fetches no other Go for a module that wants one', async () => {
      const ran = await run([{ path: EVIL, goMod: 'go 1.99\n\ntoolchain go1.99.1\n', files: { 'main.go': GO_SERVER } }]); // prettier-ignore
      expectRefused(ran, /requires go >= 1\.99/);
      expect(ran.requests.filter((one) => one.includes('toolchain'))).toEqual([]);
    });

    test.each(['../../../escaped', '/tmp/skep-escaped', 'a/../../../../escaped'])(
      'unpacks no file to %s',
      async (name) => {
        const ran = await run([{ path: EVIL, files: { 'main.go': GO_SERVER, [name]: 'x' } }]);
        expectRefused(ran, /could not be fetched/);
        expect(existsSync('/tmp/skep-escaped')).toBe(false);
      },
    );

    test('takes no module that the checksum database of the user does not vouch for', async () => {
      const modules = [{ path: EVIL, files: { 'main.go': GO_SERVER } }];
      const ran = await run(modules, { GONOSUMDB: '', GOSUMDB: 'sum.golang.org' });
      expectRefused(ran, /verifying|could not be fetched/);
      expect(ran.requests.some((one) => one.startsWith('sumdb/sum.golang.org/lookup/example.test'))).toBe(
        true,
      );
    });

    test('asks no proxy for a module that the user calls private', async () => {
      const modules = [{ path: EVIL, files: { 'main.go': GO_SERVER } }];
      const ran = await run(modules, { ...UNKNOWN, GOPRIVATE: 'example.test' });
      expectRefused(ran, `module "${EVIL}" is private by GONOPROXY or GOPRIVATE`);
      expect(ran.requests).toEqual([]);
    });

    test('says what is wrong with a package, also where its proxy refuses what it does not have', async () => {
      const main = 'package main\n\nfunc main() { undefined() }\n';
      await using proxy = await moduleProxyOf([{ path: EVIL, files: { 'main.go': main } }], 403);
      const ran = await user.skep(['run', `go://${EVIL}`], { env: { ...UNKNOWN, GOPROXY: proxy.url } });
      expectRefused(ran, /undefined: undefined/);
    });

    test('keeps nothing of a package that is no program', async () => {
      expectRefused(
        await run([{ path: EVIL, files: { 'x.go': 'package evil\n' } }]),
        /not a main package|no program/,
      );
    });

    test('says that there is none of that name', async () => {
      await using proxy = await moduleProxyOf([]);
      const ran = await user.skep(['run', 'go://example.test/absent'], { env: { GOPROXY: proxy.url } });
      expectRefused(ran, 'package "example.test/absent" was not found in the Go module proxies');
    });

    test('says in one line that Go is missing', async () => {
      const ran = await user.skep(['run', 'go://example.test/absent'], { env: { PATH: '/usr/bin:/bin' } });
      expectRefused(
        ran,
        /^Error: Go was not found; install Go and put it on the PATH, or run an image of it$/m,
      );
    });
  });
});
