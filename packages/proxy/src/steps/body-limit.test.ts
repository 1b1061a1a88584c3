import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import type { Call } from '../call.ts';
import { BodyBudget } from './body-budget.ts';
import { bodyLimit } from './body-limit.ts';

const MIB = 1024 * 1024;

function callWith(body: string): Call {
  const req = new IncomingMessage(new Socket());
  req.push(body);
  req.push(null);
  return {
    req,
    res: new ServerResponse(req),
    authority: undefined,
    target: '/mcp',
    path: '/mcp',
    readBody: () => Promise.reject(new Error('not bounded')),
    identity: undefined,
    incoming: undefined,
    replyHooks: [],
  };
}

/** V8 hands its collector to contexts that are made while this flag is set. */
function minorCollector(): () => void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as NodeJS.GCFunction;
  setFlagsFromString('--no-expose-gc');
  return () => collect({ type: 'minor' });
}

test('the body is read once, and every step gets the same', async () => {
  const call = callWith('{"a":1}');
  await bodyLimit(MIB, new BodyBudget())(call, async () => {
    const body = await call.readBody();
    expect(body.toString()).toBe('{"a":1}');
    expect(await call.readBody()).toBe(body);
  });
});

test('a body over the limit is refused', async () => {
  const call = callWith('12345');
  const refused = bodyLimit(4, new BodyBudget())(call, async () => void (await call.readBody()));
  await expect(refused).rejects.toMatchObject({ code: 'proxy/body-too-large' });
});

test('a call that is over goes with the new objects, and does not wait for a full collection', async () => {
  const collect = minorCollector();
  const step = bodyLimit(MIB, new BodyBudget());
  const calls = async (count: number): Promise<void> => {
    for (let at = 1; at <= count; at += 1) {
      const call = callWith('{}');
      Object.assign(call.req, { ballast: Array.from({ length: 2_000 }, () => at) });
      await step(call, async () => void (await call.readBody()));
      // Between two calls, when none is held by what is running.
      await new Promise(setImmediate);
      if (at % 50 === 0) collect();
    }
    collect();
    collect();
  };
  await calls(200);
  let kept = Infinity;
  // A full collection that is under way keeps what is new for a while.
  for (let round = 0; round < 5 && kept > MIB; round += 1) {
    const before = process.memoryUsage().heapUsed;
    await calls(300);
    kept = process.memoryUsage().heapUsed - before;
  }
  expect(kept).toBeLessThan(MIB);
});
