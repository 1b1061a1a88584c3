import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { MOODY_SERVER } from './fixtures/moody-server.ts';
import { npmRegistryWith } from './fixtures/npm-registry.ts';
import { component, title } from './require.ts';
import { ask, openUser } from './skep.ts';

const sandbox = await component('sandbox');
const TIMES = 12;
const PACKAGE = 'skep-test-again-and-again';

/** Open descriptors, and processes that were started by it and are there still. */
function heldBy(pid: number): { readonly descriptors: number; readonly children: number } {
  const tasks = `/proc/${pid}/task`;
  const children = readdirSync(tasks).flatMap((task) =>
    readFileSync(`${tasks}/${task}/children`, 'utf8').split(' ').filter(Boolean),
  );
  return { descriptors: readdirSync(`/proc/${pid}/fd`).length, children: children.length };
}

test.skipIf(!sandbox.available)(
  title('a server that is stopped and started again and again leaves nothing in the supervisor', sandbox),
  async () => {
    await using registry = await npmRegistryWith(PACKAGE, MOODY_SERVER);
    const user = openUser({ SKEP_RUNTIME: 'sandbox', npm_config_registry: registry.url });
    const stopAndStart = async (): Promise<void> => {
      expect(await user.skep(['stop', 'often'])).toMatchObject({ code: 0 });
      expect(await user.skep(['start', 'often'])).toMatchObject({ code: 0 });
    };
    try {
      // Keeps the supervisor, which ends when it has nothing to host.
      expect(await user.skep(['run', `npx://${PACKAGE}`, '--name', 'stays'])).toMatchObject({ code: 0 });
      const { stdout } = await user.skep(['run', `npx://${PACKAGE}`, '--name', 'often']);
      const [supervisor = 0] = user.supervisors();
      for (let n = 0; n < 3; n += 1) await stopAndStart();
      const before = heldBy(supervisor);
      for (let n = 0; n < TIMES; n += 1) await stopAndStart();
      expect(user.supervisors()).toEqual([supervisor]);
      // A connection that closes at this moment, or closed at that one, is no leak: those grow with each time.
      const grown = (): number => {
        const { descriptors, children } = heldBy(supervisor);
        return Math.max(descriptors - before.descriptors, children - before.children);
      };
      await expect.poll(grown, { timeout: 10_000 }).toBeLessThan(TIMES / 2);
      expect(await ask(stdout.trim(), 'tools/list')).toHaveProperty('result.tools');
    } finally {
      await user.end();
    }
  },
);
