import { readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { MOODY_SERVER } from './fixtures/moody-server.ts';
import { npmRegistryWith } from './fixtures/npm-registry.ts';
import { groupsOf } from './kills/look.ts';
import { component, title } from './require.ts';
import { ask, openUser, USERS, type TestUser } from './skep.ts';

const sandbox = await component('sandbox');
const PACKAGE = 'skep-test-damaged';

let user: TestUser;
let registry: Awaited<ReturnType<typeof npmRegistryWith>>;
const at = (file: string): string => path.join(user.dir, file);

/** Processes whose error output goes into this user's sandbox directory: bubblewrap and the servers in it. */
function sandboxed(): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/2`).startsWith(at('data/skep/sandbox/'));
    } catch {
      // It ended while we looked, or belongs to somebody else.
      return false;
    }
  });
}

describe.skipIf(!sandbox.available).each(USERS)(
  title('damaged state of a sandbox of %s', sandbox),
  (_who, uid) => {
    beforeEach(async () => {
      registry = await npmRegistryWith(PACKAGE, MOODY_SERVER);
      user = openUser({ SKEP_RUNTIME: 'sandbox', npm_config_registry: registry.url }, uid);
      const started = await user.skep(['run', `npx://${PACKAGE}`, '--name', 'damaged']);
      expect(started.code, started.stderr).toBe(0);
      expect(await ask(started.stdout.trim(), 'tools/list')).toHaveProperty('result.tools');
      expect(sandboxed().length).toBeGreaterThan(1);
    });
    afterEach(async () => {
      await user.end();
      await registry[Symbol.asyncDispose]();
    });

    const home = 'data/skep/sandbox/damaged';
    test.each<[string, () => void]>([
      ['its run record is damaged', () => writeFileSync(at(`${home}/run.json`), '{')],
      ['its run record is missing', () => rmSync(at(`${home}/run.json`))],
      [
        'both records are missing',
        () => {
          rmSync(at(`${home}/run.json`));
          rmSync(at(`${home}/status.json`));
        },
      ],
      [
        'its description is damaged',
        () => writeFileSync(at(`${home}/workload.json`), Buffer.from([0xff, 0xfe])),
      ],
    ])('when %s, rm ends every process and leaves nothing', async (_, damage) => {
      damage();
      expect(await user.skep(['rm', '--all', '--data'])).toMatchObject({ code: 0, stderr: '' });
      expect(sandboxed()).toEqual([]);
      expect(user.leftFiles()).toEqual([]);
      expect(groupsOf(at(home))).toEqual([]);
    });

    test('when its run record is damaged, stop and start work as ever', async () => {
      writeFileSync(at(`${home}/run.json`), '{');
      expect(await user.skep(['stop', 'damaged'])).toMatchObject({ code: 0, stderr: '' });
      expect(sandboxed()).toEqual([]);
      expect(await user.skep(['start', 'damaged'])).toMatchObject({ code: 0 });
      expect((await user.skep(['list'])).stdout).toContain('running');
    });
  },
);
