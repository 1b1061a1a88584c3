import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { ContractBench, type ContractHarness } from './contract/bench.ts';
import { confinementContract } from './contract/confinement.ts';
import { eventsContract } from './contract/events.ts';
import { isolationContract } from './contract/isolation.ts';
import { lifeContract } from './contract/life.ts';
import { limitsContract } from './contract/limits.ts';
import { logsContract } from './contract/logs.ts';
import { namesContract } from './contract/names.ts';
import { networkContract } from './contract/network.ts';
import { outlivingContract } from './contract/outliving.ts';
import { prepareContract } from './contract/prepare.ts';
import { stdioContract } from './contract/stdio.ts';
import { surroundingsContract } from './contract/surroundings.ts';
import { volumesContract } from './contract/volumes.ts';

/**
 * The behaviour every runtime adapter owes its callers: run against the real ones in e2e/runtime.test.ts, and against the
 * one in memory beside it. What only something outside this process can keep is not asked of one that has nothing there.
 */
export function runtimeContract(harness: ContractHarness): void {
  const bench = new ContractBench(harness);
  beforeAll(() => bench.open());
  afterEach(() => bench.clear());
  afterAll(() => bench.close());

  prepareContract(bench);
  lifeContract(bench);
  namesContract(bench);
  stdioContract(bench);
  surroundingsContract(bench);
  logsContract(bench);
  eventsContract(bench);

  if (harness.hold !== undefined) {
    describe('outliving', () => outlivingContract(bench));
    describe('confinement', () => confinementContract(bench));
    describe('volumes', () => volumesContract(bench));
    describe('network', () => networkContract(bench));
    limitsContract(bench);
  }
  if (harness.isolates === true) describe('isolation', () => isolationContract(bench));

  test('leaves nothing on the machine', async () => {
    await bench.clear();
    expect(await harness.leftovers()).toEqual([]);
  });
}
