import { once } from 'node:events';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { expect, onTestFinished, test } from 'vitest';
import {
  commandUnderTest,
  controlsIn,
  ctrlC,
  NOTHING_LEFT,
  type CommandUnderTest,
} from '../command-under-test.fixture.ts';
import { MemoryRuntime } from '../runtime/doubles/memory-runtime.ts';
import { idle } from '../runtime/doubles/program.ts';
import type { Prepared, PrepareRequest } from '../runtime/runtime.ts';
import { systemClock, type Clock } from '@skep/core/time/clock.ts';
import { STDIO_SPEC } from '../runtime/doubles/stdio-spec.ts';

const never = (): Promise<never> => new Promise(() => {});
const QUIET = '--image-verification disabled';
const RUNNING = { saved: ['a1'], statuses: ['a1'], workloads: ['a1'] };

/** A port that somebody listens on until the test ends. */
async function busyPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** Both ways of carrying a run out end in the same. */
const WAYS = ['up', 'asked'] as const;

test.each(WAYS)('a name that runs is taken, and what has it is left alone (%s)', async (supervisor) => {
  const skep = await commandUnderTest({ supervisor });
  await skep.output('run fake:1 --name a1');
  expect(await skep.refusal(`run example/tools:2 --name a1 ${QUIET}`)).toBe(
    "Error: workload with name 'a1' already exists; choose another --name, or remove it with skep rm a1\n",
  );
  expect(skep.runtime.startsOf('a1')).toBe(1);
});

test.each(WAYS)(
  'a name that is stopped is taken, too: its address must stay its own (%s)',
  async (supervisor) => {
    const skep = await commandUnderTest({ supervisor });
    await skep.output('run fake:1 --name a1');
    await skep.output('stop a1');
    expect(await skep.refusal(`run fake:1 --name a1 ${QUIET}`)).toContain("name 'a1' already exists");
  },
);

test.each([
  ['running', false],
  ['stopped', false],
  ['starting', false],
  ['unhealthy', false],
  ['error', true],
  // A saved configuration alone is what a killed command left.
  [undefined, true],
] as const)('whether the name of one whose status is %s is free: %s', async (status, isFree) => {
  const skep = await commandUnderTest({ supervisor: 'asked' });
  await skep.output('run fake:1 --name a1');
  await skep.output('stop a1');
  const path = join(skep.places.statusesDir, 'a1.json');
  if (status === undefined) await rm(path);
  else await writeFile(path, JSON.stringify({ ...JSON.parse(await skep.read(path)), status, process_id: 0 }));
  const { status: code, err } = await skep.run('run example/tools:2 --name a1');
  expect({ code, taken: err.includes("name 'a1' already exists") }).toEqual({
    code: isFree ? 0 : 1,
    taken: !isFree,
  });
  expect(skep.runtime.specOf('a1')?.reference).toBe(isFree ? 'example/tools:2' : 'fake:1');
});

test.each(WAYS)('of two runs of one name at once one gets it (%s)', async (supervisor) => {
  const skep = await commandUnderTest({ supervisor });
  await skep.startSupervisor();
  const line = `run fake:1 --name a1 ${QUIET}`;
  const outcomes = await Promise.all([skep.run(line), skep.run(line), skep.run(line)]);
  expect(outcomes.filter(({ status }) => status === 0)).toHaveLength(1);
  expect(await skep.left()).toEqual(RUNNING);
});

test.each(WAYS)(
  'a workload of that name that Skep did not make is never touched (%s)',
  async (supervisor) => {
    const skep = await commandUnderTest({ supervisor });
    await skep.runtime.create(STDIO_SPEC);
    const said = await skep.refusal(`run fake:1 --name a1 ${QUIET}`);
    expect(said).toMatch(/^Error: .*"a1".*; .*\n$/);
    expect(await skep.left()).toEqual({ ...NOTHING_LEFT, workloads: ['a1'] });
  },
);

test.each(WAYS)('a port that somebody listens on is never silently another one (%s)', async (supervisor) => {
  const skep = await commandUnderTest({ supervisor });
  const port = await busyPort();
  expect(await skep.refusal(`run fake:1 --proxy-port ${port}`)).toBe(
    `Error: requested proxy port ${port} is not available: another program listens there; choose another --proxy-port, or leave the flag out for a free one\n`,
  );
});

test.each(WAYS)('a port of a stopped workload is promised to it (%s)', async (supervisor) => {
  const skep = await commandUnderTest({ supervisor });
  const port = Number(new URL(await skep.output('run fake:1 --name a1')).port);
  await skep.output('stop a1');
  expect(await skep.refusal(`run fake:1 --name a2 --proxy-port ${port}`)).toContain(
    `requested proxy port ${port} is not available: workload "a1" has it`,
  );
  await skep.output('rm a1');
  await skep.output(`run fake:1 --name a2 --proxy-port ${port}`);
});

test.each(WAYS)(
  'a server that crashes at its start is told with its last lines and removed (%s)',
  async (supervisor) => {
    const skep = await commandUnderTest({ supervisor, greet: never });
    skep.runtime.crash = { exitCode: 3, says: 'reading settings\nno token\n' };
    const { status, out, err } = await skep.run(`run fake:1 --name a1 ${QUIET}`);
    expect({ status, out }).toEqual({ status: 1, out: '' });
    expect(err).toContain('  reading settings\n  no token\n');
    expect(err).toContain(
      'Error: the server of "a1" stopped right after it was started, with exit status 3; read its last lines above; check its arguments and environment variables\n',
    );
    expect(await skep.left()).toEqual(NOTHING_LEFT);
  },
);

test.each(WAYS)('what a crashing server writes cannot steer the terminal (%s)', async (supervisor) => {
  const skep = await commandUnderTest({ supervisor, greet: never });
  skep.runtime.crash = { exitCode: 1, says: '\u001B]0;owned\u0007\u001B[2Jbye\n' };
  const { err } = await skep.run('run fake:1');
  expect(err).toContain('bye');
  expect(controlsIn(err)).toEqual([]);
});

/** What people wait for long is over at once. */
const impatient: Clock = {
  ...systemClock,
  sleep: (ms, signal) => (ms >= 5_000 ? Promise.resolve() : systemClock.sleep(ms, signal)),
};

test.each(WAYS)('a server that never answers is told and removed (%s)', async (supervisor) => {
  const skep = await commandUnderTest({ supervisor, greet: never, clock: impatient });
  const { status, err } = await skep.run(`run fake:1 --name a1 ${QUIET}`);
  expect(status).toBe(1);
  expect(err).toContain('Error: the server of "a1" did not answer an MCP initialize');
  expect(err).toContain('--no-check runs it unasked\n');
  expect(await skep.left()).toEqual(NOTHING_LEFT);
});

test.each(WAYS)('with --no-check nobody waits for an answer, and that is told (%s)', async (supervisor) => {
  const skep = await commandUnderTest({ supervisor, greet: never });
  const { status, err } = await skep.run('run fake:1 --name a1 --no-check');
  expect(status).toBe(0);
  expect(err).toContain('a1 is running, and was not asked whether it answers');
});

test.each(WAYS)('a failed run can be repeated under its name (%s)', async (supervisor) => {
  const answers = [new Error('not yet')];
  const skep = await commandUnderTest({
    supervisor,
    clock: impatient,
    async greet() {
      const error = answers.shift();
      return error === undefined ? { name: 'fake' } : never();
    },
  });
  expect((await skep.run('run fake:1 --name a1')).status).toBe(1);
  await skep.output('run fake:1 --name a1');
  expect(await skep.left()).toEqual(RUNNING);
});

test.each(WAYS)('Ctrl-C while the server starts leaves nothing (%s)', async (supervisor) => {
  const pressed = ctrlC();
  const skep = await commandUnderTest({
    supervisor,
    greet: () => {
      pressed.press();
      return never();
    },
  });
  const { status, out, err } = await skep.run('run fake:1 --name a1', { signal: pressed.signal });
  expect({ status, out }).toEqual({ status: 1, out: '' });
  expect(err.endsWith('Error: cancelled; nothing was left behind\n')).toBe(true);
  await expect.poll(() => skep.left(), { timeout: 9_000 }).toEqual(NOTHING_LEFT);
});

test.each(WAYS)('an engine that does not answer is told, and nothing is saved (%s)', async (supervisor) => {
  const skep = await commandUnderTest({ supervisor });
  skep.runtime.unreachable = true;
  const { status, out, err } = await skep.run('run fake:1');
  skep.runtime.unreachable = false;
  expect({ status, out }).toEqual({ status: 1, out: '' });
  expect(err).toContain('Error: the engine in memory is down; check that it is running');
  expect(await skep.left()).toEqual(NOTHING_LEFT);
});

test.each(WAYS)(
  'directories that cannot be written are named before anything is fetched (%s)',
  async (supervisor) => {
    const skep = await commandUnderTest({ supervisor });
    await skep.startSupervisor();
    await rm(skep.places.runConfigsDir, { recursive: true, force: true });
    await writeFile(skep.places.runConfigsDir, 'in the way');
    const { status, err } = await skep.run(`run fake:1 ${QUIET}`);
    expect(status).toBe(1);
    expect(err).toMatch(/^Error: cannot write to ".*\/runconfigs": EEXIST; .*\n$/);
  },
);

/** An engine in which something happens while a package is fetched. */
class BusyRuntime extends MemoryRuntime {
  meanwhile: () => Promise<void> = async () => {};

  constructor() {
    super({ 'fake:1': idle, fake: idle });
  }

  override async prepare(request: PrepareRequest): Promise<Prepared> {
    const prepared = await super.prepare(request);
    await this.meanwhile();
    return prepared;
  }
}

async function whileFetching(
  meanwhile: (skep: CommandUnderTest) => Promise<void>,
): Promise<{ skep: CommandUnderTest; runtime: BusyRuntime }> {
  const runtime = new BusyRuntime();
  const skep = await commandUnderTest({ runtime, supervisor: 'asked' });
  runtime.meanwhile = () => meanwhile(skep);
  return { skep, runtime };
}

test('a port that is taken while a package is fetched is an error, and the package goes again', async () => {
  const wanted = createServer();
  wanted.listen(0, '127.0.0.1');
  await once(wanted, 'listening');
  const { port } = wanted.address() as AddressInfo;
  await new Promise((resolve) => wanted.close(resolve));
  const { skep, runtime } = await whileFetching(async () => {
    wanted.listen(port, '127.0.0.1');
    await once(wanted, 'listening');
  });
  onTestFinished(() => void wanted.close());
  expect(await skep.refusal(`run npx://fake --proxy-port ${port}`)).toContain(
    `port ${port} is not available`,
  );
  expect(runtime.discarded).toEqual(['fake']);
});

test('what cannot be saved is not started, and what was fetched for it goes again', async () => {
  const { skep, runtime } = await whileFetching(async ({ places }) => {
    await mkdir(join(places.runConfigsDir, 'fake.json', 'in-the-way'), { recursive: true });
  });
  const { status, err } = await skep.run('run npx://fake');
  expect(status).toBe(1);
  expect(err).toMatch(/Error: .*\/runconfigs\/fake\.json.*\n$/);
  expect(runtime.discarded).toEqual(['fake']);
  expect(await runtime.list()).toEqual([]);
});

test('a package that another workload runs from is kept when a run of it fails', async () => {
  const { skep, runtime } = await whileFetching(async () => {});
  await skep.output('run npx://fake --name a1');
  runtime.meanwhile = async () => {
    await mkdir(join(skep.places.runConfigsDir, 'a2.json', 'in-the-way'), { recursive: true });
  };
  expect((await skep.run('run npx://fake --name a2')).status).toBe(1);
  expect(runtime.discarded).toEqual([]);
});

test('what fails behind the saving, and before the launch, is not saved any more', async () => {
  const { skep, runtime } = await whileFetching(async () => {});
  runtime.cautions = () => Promise.reject(new SkepError('runtime/engine-unreachable'));
  expect(await skep.refusal('run npx://fake')).toContain('the container engine does not answer');
  expect(runtime.discarded).toEqual(['fake']);
});

test.each(WAYS)(
  'what the engine refuses to make is told, and nothing of it is left (%s)',
  async (supervisor) => {
    for (const step of ['create', 'start'] as const) {
      const skep = await commandUnderTest({ supervisor });
      const refusal = new SkepError('runtime/engine-refused', { message: 'network "mine" not found' });
      skep.runtime[step] = () => Promise.reject(refusal);
      const { status, out, err } = await skep.run('run fake:1 --network mine');
      expect({ status, out }).toEqual({ status: 1, out: '' });
      expect(err).toContain('Error: network "mine" not found; ');
      expect(await skep.left()).toEqual(NOTHING_LEFT);
    }
  },
);

test('Ctrl-C while a package is fetched saves and starts nothing', async () => {
  const pressed = ctrlC();
  const { skep } = await whileFetching(async () => {
    pressed.press();
    pressed.signal.throwIfAborted();
  });
  const { status } = await skep.run('run npx://fake', { signal: pressed.signal });
  expect(status).toBe(1);
  expect(await skep.left()).toEqual(NOTHING_LEFT);
});
