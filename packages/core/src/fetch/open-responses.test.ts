import { once } from 'node:events';
import { createServer, request, type ServerResponse } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { listen } from './listen.ts';
import { OpenResponses } from './open-responses.ts';

/** A server, and what makes it answer: each call gives the response to one more request. */
async function asked(): Promise<() => Promise<ServerResponse>> {
  const server = createServer();
  const port = await listen(server, '127.0.0.1', 0);
  onTestFinished(() => void (server.closeAllConnections(), server.close()));
  return async () => {
    const came = once(server, 'request') as Promise<unknown[]>;
    const asking = request({ host: '127.0.0.1', port, agent: false }, (answer) => answer.resume());
    asking.on('error', () => {}).end();
    return (await came)[1] as ServerResponse;
  };
}

test('responses are there until they have ended, or were cut', async () => {
  const ask = await asked();
  const open = new OpenResponses();
  const [first, second, third] = [await ask(), await ask(), await ask()];
  for (const response of [first, second, third]) open.add(response);
  expect([...open]).toEqual([first, second, third]);
  const closed = [once(first, 'close'), once(second, 'close')];
  first.end();
  second.destroy();
  await Promise.all(closed);
  expect([...open]).toEqual([third]);
  const [fourth, fifth, sixth] = [await ask(), await ask(), await ask()];
  for (const response of [fourth, fifth, sixth]) open.add(response);
  expect(new Set(open)).toEqual(new Set([third, fourth, fifth, sixth]));
});

test('one that says twice that it has closed frees nobody else', async () => {
  const ask = await asked();
  const open = new OpenResponses();
  const first = await ask();
  open.add(first);
  const closed = once(first, 'close');
  first.end();
  await closed;
  const second = await ask();
  open.add(second);
  first.emit('close');
  const third = await ask();
  open.add(third);
  expect([...open]).toEqual([second, third]);
});
