import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { npmRegistryOf, programPackage } from './fixtures/npm-registry.ts';
import { ensureScriptImage } from './images.ts';
import { component, title } from './require.ts';
import { ask, openUser, USERS, type TestUser } from './skep.ts';

const engine = await component('engine');
const sandbox = await component('sandbox');

const SCRIPT = readFileSync(path.join(import.meta.dirname, 'fixtures/probe-server.mjs'), 'utf8');

describe.each([
  ['docker', engine, 'the user of the engine', undefined] as const,
  ...USERS.map(([who, uid]) => ['sandbox', sandbox, who, uid] as const),
])('on %s', (kind, needed, who, uid) => {
  describe.skipIf(!needed.available)(title(`as ${who}`, needed), () => {
    let user: TestUser;
    let data: string;
    beforeEach(() => {
      user = openUser({ SKEP_RUNTIME: kind }, uid);
      data = path.join(user.dir, 'project/data');
      mkdirSync(data, { recursive: true });
      mkdirSync(path.join(user.dir, '.ssh'));
      writeFileSync(path.join(data, 'file'), 'granted');
      writeFileSync(path.join(user.dir, '.ssh/file'), 'PRIVATE KEY');
      if (uid !== undefined) execFileSync('chown', ['-R', String(uid), data, path.join(user.dir, '.ssh')]);
    });
    afterEach(() => user.end());

    test('a mount whose source became a link to the keys of the user is refused at the next start', async () => {
      const name = `swapped-${randomBytes(3).toString('hex')}`;
      const profile = path.join(user.dir, 'profile.json');
      writeFileSync(profile, JSON.stringify({ read: ['project/data:/data'], network: { mode: 'none' } }));
      await using registry = await npmRegistryOf([programPackage('skep-test-swapped', SCRIPT)]);
      const target =
        kind === 'docker' ? await ensureScriptImage('skep-test/probe:1', SCRIPT) : 'npx://skep-test-swapped';
      const flags = ['--name', name, '--permission-profile', profile];
      const ran = await user.skep(['run', target, ...flags], { env: { npm_config_registry: registry.url } });
      expect(ran.code, ran.stderr).toBe(0);
      const url = ran.stdout.trim();
      const read = async () => (await ask(url, 'probe/read', { path: '/data/file' })).result;
      expect(await read()).toBe('granted');
      expect((await user.skep(['stop', name])).code).toBe(0);

      renameSync(data, `${data}.old`);
      symlinkSync(path.join(user.dir, '.ssh'), data);
      const refused = await user.skep(['start', name]);
      expect(refused).toMatchObject({ code: 1, stdout: '' });
      expect(refused.stderr).toContain(`"${data}"`);
      expect(refused.stderr).toContain(`leads to "${path.join(user.dir, '.ssh')}" now`);
      expect(refused.stderr).toContain(`skep rm ${name}`);

      rmSync(data);
      renameSync(`${data}.old`, data);
      expect((await user.skep(['start', name])).code).toBe(0);
      expect(await read()).toBe('granted');
    });
  });
});
