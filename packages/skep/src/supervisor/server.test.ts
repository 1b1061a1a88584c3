import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createConnection, type Socket } from 'node:net';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  commandUnderTest,
  openCommandUnderTest,
  type CommandUnderTest,
} from '../command-under-test.fixture.ts';
import { MemoryRuntime } from '../runtime/doubles/memory-runtime.ts';
import { idle } from '../runtime/doubles/program.ts';
import { readAddress } from './address.ts';
import { MAX_LINE_CHARS, readLines } from './protocol.ts';

/** A client that speaks as it likes. */
interface Stranger {
  readonly socket: Socket;
  /** The next that the supervisor says. */
  readonly next: () => Promise<unknown>;
  /** What the supervisor said, after its greeting, until it closed the connection. */
  readonly answers: () => Promise<readonly unknown[]>;
}

async function stranger(skep: CommandUnderTest): Promise<Stranger> {
  await skep.startSupervisor();
  const address = readAddress(skep.places, process.getuid?.());
  const socket = createConnection(address?.socket ?? '');
  socket.on('error', () => {});
  await once(socket, 'connect');
  const lines = readLines(socket);
  expect((await lines.next()).value).toMatchObject({ skep: 'supervisor', version: '1.0.0' });
  return {
    socket,
    next: async () => (await lines.next()).value,
    answers: () => Array.fromAsync(lines),
  };
}

async function saying(skep: CommandUnderTest, text: string): Promise<readonly unknown[]> {
  const { socket, answers } = await stranger(skep);
  socket.write(text);
  return answers();
}

const asking = (skep: CommandUnderTest, request: object): Promise<readonly unknown[]> =>
  saying(skep, `${JSON.stringify(request)}\n`);

describe('one request a connection', () => {
  test('is answered with what a start is told, and its result', async () => {
    const skep = await commandUnderTest();
    await skep.output('run fake:1 --name a1');
    await skep.output('stop a1');
    const said = await asking(skep, { op: 'start', name: 'a1' });
    expect(said).toEqual([
      { event: { kind: 'step', title: 'Starting a1' } },
      { event: { kind: 'step', title: 'Waiting for a1 to answer' } },
      {
        result: expect.objectContaining({
          readiness: expect.objectContaining({ is: 'answered', server: 'fake 1' }) as unknown,
        }) as unknown,
      },
    ]);
    expect(await asking(skep, { op: 'stop', name: 'a1', graceMs: 0 })).toEqual([
      { result: { stopped: true } },
    ]);
    expect(await asking(skep, { op: 'stop', name: 'a1', graceMs: 0 })).toEqual([
      { result: { stopped: false } },
    ]);
    expect(await asking(skep, { op: 'remove', name: 'a1' })).toEqual([{ result: { stays: [] } }]);
    expect(await asking(skep, { op: 'settle' })).toEqual([{ result: {} }]);
  });

  test('that fails is answered with code, message and hint', async () => {
    const skep = await commandUnderTest();
    expect(await asking(skep, { op: 'start', name: 'missing' })).toEqual([
      {
        error: {
          code: 'workload/not-found',
          message: 'workload "missing" not found',
          hint: 'see the names with skep list --all',
          detail: {},
        },
      },
    ]);
  });

  test.each(['../../etc/passwd', '', 'a b', 'a\0b', '.'])(
    'never makes a path of the name %j',
    async (name) => {
      const skep = await commandUnderTest();
      for (const op of ['start', 'stop', 'remove']) {
        const said = await asking(skep, { op, name, graceMs: 0 });
        expect(said).toMatchObject([{ error: { code: 'run/invalid-name' } }]);
      }
    },
  );

  test('to rest is refused while something is hosted, and ends it otherwise', async () => {
    const skep = await commandUnderTest();
    await skep.output('run fake:1 --name a1');
    expect(await asking(skep, { op: 'rest' })).toEqual([{ result: { ending: false } }]);
    await skep.output('rm a1');
    expect(await asking(skep, { op: 'rest' })).toEqual([{ result: { ending: true } }]);
    await expect.poll(() => readAddress(skep.places, process.getuid?.())).toBeUndefined();
  });

  test('to rest is answered when the removal that is under way is over', async () => {
    const skep = await commandUnderTest();
    await skep.output('run fake:1 --name a1');
    const { runtime } = skep;
    const { promise: isRemoving, resolve: removing } = Promise.withResolvers<void>();
    const { promise: goOn, resolve } = Promise.withResolvers<void>();
    const remove = runtime.remove.bind(runtime);
    runtime.remove = async (name) => {
      removing();
      await goOn;
      return remove(name);
    };
    const removed = asking(skep, { op: 'remove', name: 'a1' });
    await isRemoving;
    const order: string[] = [];
    const rested = asking(skep, { op: 'rest' }).then((said) => {
      order.push('answered');
      return said;
    });
    // Whatever is asked behind it is answered before.
    await asking(skep, { op: 'counts' });
    order.push('over');
    resolve();
    expect(await rested).toEqual([{ result: { ending: true } }]);
    expect(order).toEqual(['over', 'answered']);
    await removed;
  });

  test('to retire ends it at once, and what it hosts runs on', async () => {
    const skep = await commandUnderTest();
    await skep.output('run fake:1 --name a1');
    expect(await asking(skep, { op: 'retire' })).toEqual([{ result: { ending: true } }]);
    expect(await skep.runtime.inspect('a1')).toMatchObject({ state: 'running' });
  });

  test('that is cut off by its client undoes the start', async () => {
    let starts = 0;
    const skep = await commandUnderTest({
      greet: async () => ((starts += 1) === 1 ? {} : new Promise(() => {})),
    });
    await skep.output('run fake:1 --name a1');
    await skep.output('stop a1');
    const { socket, next } = await stranger(skep);
    socket.write('{"op":"start","name":"a1"}\n');
    expect(await next()).toEqual({ event: { kind: 'step', title: 'Starting a1' } });
    socket.destroy();
    await expect
      .poll(async () => (await skep.runtime.inspect('a1'))?.state, { timeout: 9_000 })
      .toBe('exited');
  });
});

test('a start that makes something else of a workload goes on without its client', async () => {
  const skep = await commandUnderTest({ runtime: new MemoryRuntime({ 'fake:1': idle, 'fake:2': idle }) });
  await skep.output('run fake:1 --name a1');
  const config = JSON.parse(await readFile(join(skep.places.runConfigsDir, 'a1.json'), 'utf8')) as object;
  const { socket, next } = await stranger(skep);
  socket.write(`${JSON.stringify({ op: 'start', name: 'a1', config: { ...config, image: 'fake:2' } })}\n`);
  expect(await next()).toEqual({ event: { kind: 'step', title: 'Starting a1' } });
  socket.destroy();
  const seen = (): Promise<unknown> => skep.runtime.inspect('a1');
  await expect.poll(seen, { timeout: 9_000 }).toMatchObject({ state: 'running', reference: 'fake:2' });
  expect(await skep.output('status a1 --format json')).toContain('"status": "running"');
});

describe('what an engine that goes away cuts short', () => {
  test.each([
    [{ op: 'stop', name: 'a1', graceMs: 0 }, 'exited'],
    [{ op: 'remove', name: 'a1' }, undefined],
  ])('is finished when it is back: %j', async (request, state) => {
    const skep = await commandUnderTest();
    await skep.output('run fake:1 --name a1');
    skep.runtime.unreachable = true;
    expect(await asking(skep, request)).toMatchObject([{ error: { code: 'runtime/engine-unreachable' } }]);
    expect(await asking(skep, { op: 'rest' })).toEqual([{ result: { ending: false } }]);
    skep.runtime.unreachable = false;
    await expect.poll(async () => (await skep.runtime.inspect('a1'))?.state, { timeout: 9_000 }).toBe(state);
  });

  test('keeps no supervisor from its end once somebody else has finished it', async () => {
    const skep = await commandUnderTest();
    await skep.output('run fake:1 --name a1');
    skep.runtime.unreachable = true;
    expect(await asking(skep, { op: 'remove', name: 'a1' })).toMatchObject([{ error: {} }]);
    skep.runtime.unreachable = false;
    await skep.output('rm a1');
    expect(await asking(skep, { op: 'rest' })).toEqual([{ result: { ending: true } }]);
  });
});

describe('what no client says', () => {
  let skep: CommandUnderTest;
  beforeAll(async () => {
    skep = await openCommandUnderTest();
    await skep.output('run fake:1 --name a1');
  });
  afterAll(() => skep.close());

  test.each([
    'not JSON\n',
    '\n',
    '{}\n',
    '[]\n',
    'null\n',
    '{"op":"nope"}\n',
    '{"op":"start"}\n',
    '{"op":"start","name":3}\n',
    '{"op":"stop","name":"a1"}\n',
    '{"op":"run","argv":"fake:1","env":{},"cwd":"/"}\n',
    '{"op":"run","argv":["fake:1"],"env":{"A":1},"cwd":"/"}\n',
    '{"op":"__proto__"}\n',
  ])('is refused, and the connection closed: %j', async (text) => {
    expect(await saying(skep, text)).toMatchObject([{ error: { code: 'supervisor/protocol' } }]);
  });

  test('is not kept in memory without a bound', async () => {
    const said = await saying(skep, 'x'.repeat(MAX_LINE_CHARS + 1));
    expect(said).toMatchObject([{ error: { code: 'supervisor/protocol', message: 'a line is too long' } }]);
  });

  test('harms nobody else, whatever it is', async () => {
    const line = fc.oneof(
      fc.json(),
      fc.string({ unit: 'binary-ascii' }),
      fc
        .record({ op: fc.constantFrom('start', 'stop', 'remove', 'run'), name: fc.anything() })
        .map((one) => JSON.stringify(one)),
    );
    await fc.assert(
      fc.asyncProperty(line, async (text) => {
        const { socket, answers } = await stranger(skep);
        socket.end(`${text}\n`);
        await answers().catch(() => []);
      }),
      { numRuns: 15 },
    );
    expect(JSON.parse(await skep.output('status a1 --format json'))).toMatchObject({ status: 'running' });
    expect(skep.runtime.startsOf('a1')).toBe(1);
  });

  test('and a client that says nothing keeps nobody waiting', async () => {
    const { socket } = await stranger(skep);
    expect(await skep.output('list --format json')).toContain('"a1"');
    socket.destroy();
  });
});
