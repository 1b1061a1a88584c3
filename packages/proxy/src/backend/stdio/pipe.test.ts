import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { silentLog } from '@skep/core/log/log.ts';
import { describe, expect, test } from 'vitest';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { call, isCall, request, silent, started } from '../../doubles/started-mux.ts';
import { Pipe } from './pipe.ts';

describe('when the pipe breaks', () => {
  test('calls in flight fail at once, and the proxy attaches again with growing delays', async () => {
    const { server, clock, mux, join, ask } = await started(silent);
    const a = join('a');
    const outcome = ask(a, call(1));
    await server.heard(isCall);
    server.failAttach(new Error('not yet'), new Error('not yet'));
    server.crash();
    expect(await outcome.done).toBe('proxy/backend-lost');
    expect(mux.state).toBe('attaching');
    expect(await ask(a, call(2)).done).toBe('proxy/backend-away');
    for (const [delay, attaches] of [
      [2_000, 2],
      [2_000, 3],
      [4_000, 4],
    ] as const) {
      clock.pass(delay - 1);
      expect(server.attaches).toBe(attaches - 1);
      clock.pass(1);
      expect(server.attaches).toBe(attaches);
      await Promise.resolve();
      await Promise.resolve();
      await Promise.resolve();
    }
    await expect.poll(() => mux.state).toBe('attached');
    expect(await ask(a, request(3, 'x')).done).toContain('"id":3');
  });

  test('it gives up after ten attempts, and a restart brings it back', async () => {
    const { server, clock, mux, join, ask } = await started();
    server.failAttach(...Array.from({ length: 10 }, () => new Error('gone')));
    server.crash();
    await expect.poll(() => mux.state).toBe('attaching');
    for (let tries = 0; tries < 10; tries += 1) {
      clock.pass(30_000);
      await expect.poll(() => server.attaches).toBe(tries + 2);
    }
    await expect.poll(() => mux.state).toBe('lost');
    mux.restarted();
    await expect.poll(() => mux.state).toBe('attached');
    expect(await ask(join('new'), request(1, 'x')).done).toContain('"id":1');
  });
});

test('a server that floods its output leaves turns to everybody else', async () => {
  const stdout = new PassThrough();
  const piece = Buffer.from('{"flood":true}\n'.repeat(2_000));
  const seen: string[] = [];
  const pipe = new Pipe({
    backend: {
      kind: 'stdio',
      attach: () => Promise.resolve({ stdin: new PassThrough(), stdout, close() {} }),
    },
    clock: manualClock(),
    log: silentLog,
    onLine: (line) => void seen.push(line),
    onBroken() {},
    onAttachedAgain() {},
  });
  await pipe.attach();
  for (let n = 0; n < 20; n += 1) stdout.write(piece);
  let turns = 0;
  while (seen.length < 20 * 2_000) {
    turns += 1;
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(turns).toBeGreaterThanOrEqual(10);
  pipe.close();
});

test('a fault in what waited for the server neither escapes nor keeps the pipe from coming back', async () => {
  const clock = manualClock();
  const stdouts: PassThrough[] = [];
  const log: string[] = [];
  const pipe = new Pipe({
    backend: {
      kind: 'stdio',
      attach() {
        const stdout = new PassThrough();
        stdouts.push(stdout);
        return Promise.resolve({ stdin: new PassThrough(), stdout, close() {} });
      },
    },
    clock,
    log: { ...silentLog, error: (_fields, text) => void log.push(text) },
    onLine() {},
    onBroken() {
      throw new TypeError('a fault of ours');
    },
    onAttachedAgain() {},
  });
  await pipe.attach();
  expect(() => stdouts[0]?.emit('end')).not.toThrow();
  expect(log).toEqual(['what waited for the server could not be told']);
  clock.pass(2_000);
  await expect.poll(() => pipe.state).toBe('attached');
  pipe.close();
});

test('what was said in the last turn is written before the pipe is closed', async () => {
  const stdin = new PassThrough();
  const pipe = new Pipe({
    backend: {
      kind: 'stdio',
      attach: () => Promise.resolve({ stdin, stdout: new PassThrough(), close: () => stdin.end() }),
    },
    clock: manualClock(),
    log: silentLog,
    onLine() {},
    onBroken() {},
    onAttachedAgain() {},
  });
  await pipe.attach();
  pipe.write('the last');
  pipe.close();
  expect(await text(stdin)).toBe('the last\n');
});
