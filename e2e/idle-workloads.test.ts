import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { MOODY_SERVER } from './fixtures/moody-server.ts';
import { npmRegistryWith } from './fixtures/npm-registry.ts';
import { component, title } from './require.ts';
import { openUser } from './skep.ts';

const sandbox = await component('sandbox');
const PACKAGE = 'skep-test-idle';
const WORKLOADS = 5;
const WINDOW_SECONDS = 2;
/** Looking at each workload once a second takes 50; what is left now is about 10, of which most is not per workload. */
const WAKE_UPS = 25;

/** How often the threads of a process have waited for something to do. */
function wakeUps(pid: number): number {
  const tasks = `/proc/${pid}/task`;
  const counts = readdirSync(tasks).map((task) => {
    const status = readFileSync(`${tasks}/${task}/status`, 'utf8');
    return Number(/^voluntary_ctxt_switches:\t(\d+)$/m.exec(status)?.[1]);
  });
  return counts.reduce((sum, count) => sum + count, 0);
}

test.skipIf(!sandbox.available)(
  title('servers in the sandbox that do nothing are not looked at again and again', sandbox),
  async () => {
    await using registry = await npmRegistryWith(PACKAGE, MOODY_SERVER);
    const user = openUser({ SKEP_RUNTIME: 'sandbox', npm_config_registry: registry.url });
    try {
      for (let n = 0; n < WORKLOADS; n += 1) {
        const { code, stderr } = await user.skep(['run', `npx://${PACKAGE}`, '--name', `idle-${n}`]);
        expect(code, stderr).toBe(0);
      }
      const [supervisor = 0] = user.supervisors();
      // The starts may still have an aftermath in the first windows.
      const inOneWindow = async (): Promise<number> => {
        const before = wakeUps(supervisor);
        await delay(WINDOW_SECONDS * 1000);
        return wakeUps(supervisor) - before;
      };
      await expect.poll(inOneWindow, { timeout: 30_000 }).toBeLessThan(WORKLOADS * WINDOW_SECONDS * WAKE_UPS);
    } finally {
      await user.end();
    }
  },
);
