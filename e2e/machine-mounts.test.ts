import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { MOODY_SERVER } from './fixtures/moody-server.ts';
import { npmRegistryWith } from './fixtures/npm-registry.ts';
import { component, title } from './require.ts';
import { ask, openUser } from './skep.ts';

const sandbox = await component('sandbox');
const slirp = await component('slirp');
const missing = sandbox.available ? slirp : sandbox;
const PACKAGE = 'skep-test-mounts';

// As root, slirp4netns takes the mounts below every shared mount away from the machine, unless it gets a view of its own.
test.skipIf(!missing.available || process.getuid?.() !== 0)(
  title('what is mounted below a shared mount of this machine stays when root runs a server', missing),
  async () => {
    await using registry = await npmRegistryWith(PACKAGE, MOODY_SERVER);
    const user = openUser({ SKEP_RUNTIME: 'sandbox', npm_config_registry: registry.url });
    const shared = path.join(user.dir, 'shared');
    const below = path.join(shared, 'below');
    mkdirSync(shared);
    execFileSync('mount', ['-t', 'tmpfs', 'skep-test', shared]);
    try {
      execFileSync('mount', ['--make-shared', shared]);
      mkdirSync(below);
      execFileSync('mount', ['-t', 'tmpfs', 'skep-test', below]);
      writeFileSync(path.join(below, 'file'), '');
      const { code, stdout, stderr } = await user.skep(['run', `npx://${PACKAGE}`, '--name', 'mounts']);
      expect(code, stderr).toBe(0);
      expect(await ask(stdout.trim(), 'tools/list')).toHaveProperty('result.tools');
      expect(existsSync(path.join(below, 'file'))).toBe(true);
      expect(await user.skep(['rm', 'mounts'])).toMatchObject({ code: 0 });
      expect(existsSync(path.join(below, 'file'))).toBe(true);
    } finally {
      execFileSync('umount', ['--recursive', shared]);
      await user.end();
    }
  },
);
