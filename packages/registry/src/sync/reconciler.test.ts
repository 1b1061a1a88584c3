import { silentLog } from '@skep/core/log/log.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { ALIVE_MS } from '../store/writes/config-generation.ts';
import type { DesiredState } from '../store/desired-state.ts';
import { sourceOf } from '../store/contract/fixture.ts';
import { Reconciler } from './reconciler.ts';
import { type ManualClock, manualClock } from '@skep/core/time/doubles/manual-clock.ts';

const NOTHING = { created: [], updated: [], deleted: [] };
const of = (name: string): DesiredState => ({ sources: [sourceOf(name)], registries: [] });

describe('Reconciler', () => {
  let clock: ManualClock;
  let did: string[];
  let inForce: boolean;
  let fails: boolean;
  let reports: number;
  let reconciler: Reconciler;

  const answered = async (what: string): Promise<void> => {
    did.push(what);
    if (fails) throw new SkepError('store/unavailable');
  };

  beforeEach(() => {
    clock = manualClock();
    did = [];
    inForce = true;
    fails = false;
    reports = 0;
    reconciler = new Reconciler({
      store: {
        reconcile: async ({ sources: [source] }, replica) => {
          await answered(`reconcile ${source?.name} as ${replica}`);
          return { revision: 7, value: { inForce, sources: NOTHING, registries: NOTHING, blocked: [] } };
        },
        renewReplica: (replica) => answered(`renew ${replica}`),
        removeReplica: (replica) => answered(`remove ${replica}`),
      },
      clock,
      log: silentLog,
      replica: 'me',
      reconciled: () => (reports += 1),
    });
  });

  async function beat(milliseconds: number): Promise<void> {
    await vi.waitFor(() => expect(clock.nextIn).toBe(milliseconds), { interval: 1 });
    clock.pass(milliseconds);
  }

  test('says that the process runs, often enough that a beat may be missed, until it ends', async () => {
    expect(await reconciler.reconcile(of('a'))).toBe(7);
    await beat(ALIVE_MS / 4);
    fails = true;
    await beat(ALIVE_MS / 4);
    await beat(ALIVE_MS / 4);
    await vi.waitFor(() => expect(did).toHaveLength(4), { interval: 1 });
    fails = false;
    await reconciler.close();
    await reconciler.close();
    expect(did).toEqual(['reconcile a as me', 'renew me', 'renew me', 'renew me', 'remove me']);
    expect([clock.nextIn, reports]).toEqual([undefined, 1]);
  });

  test('tries to come into force until it is, and reports only then', async () => {
    inForce = false;
    await reconciler.reconcile(of('a'));
    await beat(5_000);
    fails = true;
    await beat(5_000);
    await vi.waitFor(() => expect(did).toHaveLength(3), { interval: 1 });
    expect(reports).toBe(0);
    fails = false;
    inForce = true;
    await beat(5_000);
    await beat(ALIVE_MS / 4);
    expect(reports).toBe(1);
    await reconciler.close();
    expect(did).toEqual([...Array<string>(4).fill('reconcile a as me'), 'renew me', 'remove me']);
  });

  test('keeps the configuration before when a new one is refused, and forgets it when one is taken', async () => {
    inForce = false;
    await reconciler.reconcile(of('a'));
    fails = true;
    await expect(reconciler.reconcile(of('b'))).rejects.toMatchObject({ code: 'store/unavailable' });
    fails = false;
    await beat(5_000);
    await reconciler.reconcile(of('c'));
    await beat(5_000);
    await reconciler.close();
    expect(did.map((line) => line.split(' ')[1])).toEqual(['a', 'b', 'a', 'c', 'c', 'me']);
  });
});
