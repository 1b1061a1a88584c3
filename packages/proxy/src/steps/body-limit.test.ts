import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import type { Call } from '../call/call.ts';
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
    read: undefined,
    identity: undefined,
    isOwn: false,
    incoming: undefined,
    isChanged: false,
    answerer: undefined,
    replyHooks: [],
    answerHolds: [],
    answerHooks: [],
    isAnsweredElsewhere: false,
    sent: undefined,
    bearer: undefined,
    credentials: undefined,
    trace: undefined,
    prefix: '',
  };
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
