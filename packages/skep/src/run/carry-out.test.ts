import { SkepError } from '@skep/core/errors/skep-error.ts';
import { acquireLock } from '@skep/core/files/lock.ts';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { setImmediate as immediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { Context } from '../cli/context.ts';
import { commandUnderTest, NOTHING_LEFT } from '../command-under-test.fixture.ts';
import { loadRunConfig, saveRunConfig } from '../run-config/file.ts';
import { Spares } from '../runtime/spares.ts';
import { MemoryRuntime } from '../runtime/doubles/memory-runtime.ts';
import { idle } from '../runtime/doubles/program.ts';
import { readStatus } from '../supervisor/state.ts';
import { surroundingsOf } from './carry-out.ts';
import { startLock } from '../supervisor/wake-early.ts';

/** What a run asks of a runtime until it runs. */
const ASKED = new Set<string | symbol>([
  'attach',
  'cautions',
  'create',
  'has',
  'inspect',
  'isCurrent',
  'prepare',
  'probe',
  'start',
]);
const RUNNING = { saved: ['a1'], statuses: ['a1'], workloads: ['a1'] };
/** More than any run asks. */
const MANY = 40;

interface Trouble {
  /** The call that fails, counted from now; 0 for none. */
  at: number;
  /** What failed. */
  failed?: string;
  hasPrepared?: boolean;
}

/** A runtime that fails once, at the call that the trouble says. */
function troubled(trouble: Trouble): MemoryRuntime {
  const runtime = new MemoryRuntime({ 'fake:1': idle, fake: idle });
  return new Proxy(runtime, {
    get(target, key) {
      const member: unknown = Reflect.get(target, key, target);
      if (typeof member !== 'function') return member;
      return (...given: unknown[]): unknown => {
        if (ASKED.has(key) && trouble.at > 0 && (trouble.at -= 1) === 0) {
          trouble.failed = String(key);
          return Promise.reject(new SkepError('runtime/engine-unreachable', { message: 'no' }));
        }
        if (key === 'prepare') trouble.hasPrepared = true;
        return member.apply(target, given);
      };
    },
  });
}

/** Fails one call after the other until the line does without failing; resolves to what was made to fail. */
async function atEachStep(trouble: Trouble, attempt: () => Promise<void>): Promise<readonly string[]> {
  const failed: string[] = [];
  for (let at = 1; at < MANY; at += 1) {
    delete trouble.failed;
    delete trouble.hasPrepared;
    trouble.at = at;
    await attempt();
    const was: string | undefined = trouble.failed;
    trouble.at = 0;
    if (was === undefined) return failed;
    failed.push(was);
  }
  throw new Error(`it still asks after ${failed.join(', ')}`);
}

const FILE = { name: 'a1', image: 'fake', transport: 'stdio', package: { kind: 'package', ecosystem: 'npm', name: 'fake' } }; // prettier-ignore

describe.each(['up', 'asked'] as const)('with a supervisor that is %s', (supervisor) => {
  test.each([
    ['flags', 'run npx://fake --name a1'],
    ['an exported file', 'run --from-config file.json'],
  ])('a run of %s that fails at any step leaves nothing, and its name free', async (_, line) => {
    const trouble: Trouble = { at: 0 };
    const runtime = troubled(trouble);
    const skep = await commandUnderTest({ supervisor, runtime, files: { 'file.json': FILE } });
    await skep.startSupervisor();
    const failed = await atEachStep(trouble, async () => {
      const { status } = await skep.run(line);
      expect(await skep.left()).toEqual(status === 0 ? RUNNING : NOTHING_LEFT);
      // What was fetched for it is gone, too.
      expect(runtime.discarded.splice(0).length > 0).toBe(status !== 0 && trouble.hasPrepared === true);
      trouble.at = 0;
      await skep.output('rm a1');
      runtime.discarded.splice(0);
    });
    expect(failed).toEqual(expect.arrayContaining(['prepare', 'cautions', 'create', 'start']));
  });
});

test('a start that fails at any step leaves the saved configuration as it was', async () => {
  const trouble: Trouble = { at: 0 };
  const skep = await commandUnderTest({ runtime: troubled(trouble), supervisor: 'asked' });
  await skep.output('run npx://fake --name a1');
  await skep.output('stop a1');
  const { places } = skep;
  // Pruned meanwhile: the tree of the package is not there any more.
  await saveRunConfig(places, { ...(await loadRunConfig(places, 'a1')), image: 'pruned' });
  const before = await loadRunConfig(places, 'a1');
  const failed = await atEachStep(trouble, async () => {
    const { status } = await skep.run('start a1');
    const prepared = { ...before, image: 'fake' };
    const after = await loadRunConfig(places, 'a1');
    if (['probe', 'has', 'prepare'].includes(trouble.failed ?? '')) expect(after).toEqual(before);
    else expect(after).toEqual(prepared);
    trouble.at = 0;
    if (status !== 0) await saveRunConfig(places, before);
  });
  expect(failed).toEqual(expect.arrayContaining(['probe', 'has', 'prepare', 'start']));
});

describe('while the supervisor that a run has started comes up', () => {
  const begin = async (line: string, isWoken = true, comesUp = true) => {
    const made: string[] = [];
    const started: string[] = [];
    const spares = new Spares();
    const runtime = Object.assign(new MemoryRuntime({ 'fake:1': idle, fake: idle }), {
      makeAhead: () =>
        spares.make('engine', async () => {
          made.push('a network');
          return { id: 'n1', name: 'n1', remove: async () => void made.push('none') };
        }),
    });
    const start = runtime.start.bind(runtime);
    runtime.start = async (name) => {
      const status = await readStatus(skep.places, name);
      started.push(`${name} by ${status?.process_id === process.pid ? 'one that has noted it' : 'nobody'}`);
      return start(name);
    };
    const skep = await commandUnderTest({ supervisor: comesUp ? 'asked' : 'none', runtime });
    if (comesUp) await skep.startSupervisor();
    const waiting = { waitMs: 0, what: 'starting the supervisor' };
    using lock = await acquireLock(startLock(skep.places), waiting);
    const spawned = {
      word: Promise.resolve({ up: true } as const),
      over: comesUp ? new Promise<void>(() => {}) : Promise.resolve(),
    };
    const woken = { begin: () => spawned, lock };
    const { status } = await skep.run(line, isWoken ? { woken, spares } : { spares });
    // As whoever has woken the supervisor does.
    await spares.close();
    return { status, made, started, left: await runtime.list(), places: skep.places };
  };

  test.each([
    ['a run that has another one', 'run fake:1 --name a1', 0],
    ['a run that fails', 'run missing:1 --name a1', 1],
  ])(
    'what its start begins with is made before that is planned, and left to be taken back by %s',
    async (_, line, status) => {
      expect(await begin(line)).toMatchObject({ status, made: ['a network', 'none'] });
    },
  );

  test('the run goes on once whoever makes that has heard of it, or does not seem to hear', async () => {
    const { promise: late, resolve: wake } = Promise.withResolvers<void>();
    const clock = { ...manualClock(), sleep: () => late };
    const { signal } = new AbortController();
    let hears = (): void => {};
    const runtime = Object.assign(new MemoryRuntime({}), {
      makeAhead(_signal?: AbortSignal, asked?: () => void) {
        hears = asked ?? hears;
        return new Promise<void>(() => {});
      },
    });
    const { makeAhead } = surroundingsOf({ signal, clock, woken: {} } as unknown as Context);
    const order: string[] = [];
    const first = makeAhead?.(runtime).then(() => order.push('heard'));
    await immediate();
    expect(order).toEqual([]);
    hears();
    await first;
    const second = makeAhead?.(runtime).then(() => order.push('deaf'));
    await immediate();
    expect(order).toEqual(['heard']);
    wake();
    await second;
    expect(order).toEqual(['heard', 'deaf']);
  });

  test.each([
    ['a supervisor is up', 'run fake:1 --name a1', false],
    ['it has no network', 'run fake:1 --name a1 --network none', true],
    ['it is isolated', 'run fake:1 --name a1 --isolate-network', true],
  ])('nothing is made where %s', async (_, line, isWoken) => {
    expect(await begin(line, isWoken)).toMatchObject({ status: 0, made: [] });
  });

  test('the command starts the server, once, and the supervisor takes it over', async () => {
    const { status, started, left, places } = await begin('run fake:1 --name a1');
    expect({ status, started }).toEqual({ status: 0, started: ['a1 by one that has noted it'] });
    expect(left).toMatchObject([{ name: 'a1', state: 'running' }]);
    expect(await readStatus(places, 'a1')).toMatchObject({ status: 'running' });
  });

  test('what the command has started goes where no supervisor comes up', async () => {
    const { status, started, left, places } = await begin('run fake:1 --name a1', true, false);
    expect({ status, started, left }).toEqual({
      status: 1,
      started: ['a1 by one that has noted it'],
      left: [],
    });
    expect(await readStatus(places, 'a1')).toBeUndefined();
  });
});
