import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, lstatSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { gitDaemon } from './fixtures/git-daemon.ts';
import { MOODY_SERVER } from './fixtures/moody-server.ts';
import { npmRegistryOf, programPackage, type FixturePackage } from './fixtures/npm-registry.ts';
import { component, title } from './require.ts';
import { ask, openUser, USERS, type SkepResult, type TestUser } from './skep.ts';

const sandbox = await component('sandbox');

describe.skipIf(!sandbox.available)(title('fetching a hostile package', sandbox), () => {
  describe.each(USERS)('as %s', (_who, uid) => {
    let user: TestUser;
    let secrets: string;
    beforeEach(() => {
      user = openUser({ SKEP_RUNTIME: 'sandbox', TEST_SECRET: 'in-the-environment' }, uid);
      secrets = path.join(user.dir, 'private-project');
      mkdirSync(secrets);
      writeFileSync(path.join(secrets, 'package.json'), '{"name":"private-project","version":"1.0.0"}');
      writeFileSync(path.join(secrets, 'secret.txt'), 'TOP-SECRET-42');
      if (uid !== undefined) execFileSync('chown', ['-R', String(uid), secrets]);
    });
    afterEach(() => user.end());

    /** `skep run` of the first package, from a registry with all of them. */
    async function run(packages: readonly FixturePackage[]): Promise<SkepResult> {
      await using registry = await npmRegistryOf(packages);
      const name = packages[0]?.manifest.name ?? '';
      return await user.skep(['run', `npx://${name}`], { env: { npm_config_registry: registry.url } });
    }

    function expectRefused({ code, stderr }: SkepResult, dependency: string): void {
      expect(code, stderr).toBe(1);
      expect(stderr).toContain(`depends on "${dependency}`);
      expect(stderr).toContain('which is not in a package registry');
      const left = user.leftFiles().filter((name) => /packages\/.|runconfigs\/.|sandbox\/./.test(name));
      expect(left).toEqual([]);
    }

    const copies = (): readonly string[] => user.leftFiles().filter((name) => name.endsWith('secret.txt'));

    test('runs nothing that the settings of a git dependency name as git', async () => {
      await using daemon = await gitDaemon();
      const mark = path.join(user.dir, 'code-ran');
      chmodSync(user.dir, 0o777);
      daemon.repository('inner', { 'package.json': '{"name":"inner","version":"1.0.0"}' });
      daemon.repository('outer', {
        '.npmrc': 'git=./evil.sh\n',
        'evil.sh': `#!/bin/sh\nid > ${mark}\nexec git "$@"\n`,
        'package.json': JSON.stringify({
          name: 'outer',
          version: '1.0.0',
          scripts: { prepare: 'true' },
          dependencies: { inner: `${daemon.url}/inner.git` },
        }),
      });
      const dependencies = { outer: `${daemon.url}/outer.git` };
      const ran = await run([programPackage('hostile-git', MOODY_SERVER, { dependencies })]);
      expect(existsSync(mark)).toBe(false);
      expectRefused(ran, `outer@${daemon.url}/outer.git`);
    });

    test('takes no directory of the user along that a dependency names', async () => {
      const dependencies = { 'private-project': `file:${secrets}` };
      const ran = await run([programPackage('hostile-file', MOODY_SERVER, { dependencies })]);
      expect(copies()).toEqual([]);
      expectRefused(ran, 'private-project');
    });

    test('takes no directory of the user along that a dependency of a dependency names', async () => {
      const deep = { 'private-project': `file:${secrets}` };
      const middle = { manifest: { name: 'middle', version: '1.0.0', dependencies: deep }, files: {} };
      const dependencies = { middle: '1.0.0' };
      const ran = await run([programPackage('hostile-deep', MOODY_SERVER, { dependencies }), middle]);
      expect(copies()).toEqual([]);
      expectRefused(ran, 'private-project');
    });

    test('asks no other address for a tarball that a dependency names', async () => {
      const stranger = { manifest: { name: 'stranger', version: '1.0.0' }, files: {} };
      await using other = await npmRegistryOf([stranger]);
      const dependencies = { stranger: `${other.url}-/stranger-1.0.0.tgz` };
      const ran = await run([programPackage('hostile-remote', MOODY_SERVER, { dependencies })]);
      expect(other.requests).toEqual([]);
      expectRefused(ran, `${other.url}-/stranger-1.0.0.tgz`);
    });

    test('gets an honest package with its dependencies by the login of the user, its tarballs from another host', async () => {
      const needed = {
        manifest: { name: 'needed', version: '1.2.0', main: 'index.js' },
        files: { 'index.js': '' },
      };
      const honest = programPackage('honest', `import 'needed';\n${MOODY_SERVER.replace(/^#!.*\n/, '')}`, {
        dependencies: { needed: '^1.0.0' },
      });
      await using files = await npmRegistryOf([honest, needed]);
      await using registry = await npmRegistryOf([honest, needed], { token: 's3cret', tarballs: files.url });
      const place = registry.url.slice('http:'.length);
      writeFileSync(path.join(user.dir, '.npmrc'), `${place}:_authToken=s3cret\n`);
      const ran = await user.skep(['run', 'npx://honest'], { env: { npm_config_registry: registry.url } });
      expect(ran.code, ran.stderr).toBe(0);
      expect(await ask(ran.stdout.trim(), 'tools/list')).toHaveProperty('result.tools');
      expect(files.requests.map(({ authorization }) => authorization)).toEqual([undefined, undefined]);
      expect(ran.stderr).not.toContain('s3cret');
    });

    test('takes the bits away from programs that would run as their owner, and nothing else', async () => {
      const marked = { ...programPackage('hostile-mode', MOODY_SERVER), mode: 0o6755 };
      await using registry = await npmRegistryOf([marked]);
      const env = { npm_config_registry: registry.url };
      const ran = await user.skep(['run', 'npx://hostile-mode'], { env });
      expect(ran.code, ran.stderr).toBe(0);
      const programs = user.leftFiles().filter((name) => name.endsWith('hostile-mode/server.mjs'));
      expect(programs).not.toEqual([]);
      for (const file of user.leftFiles()) {
        // What the supervisor keeps compiled is written, and renamed, meanwhile.
        const found = lstatSync(path.join(user.dir, file), { throwIfNoEntry: false });
        expect((found?.mode ?? 0) & 0o6000, file).toBe(0);
      }
    });
  });
});
