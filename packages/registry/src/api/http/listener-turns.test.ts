import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { readsPerTurn } from './listener.ts';

function opened() {
  const handled: string[] = [];
  const clock = { now: 0 };
  const handle = readsPerTurn(
    ({ method, url }) => handled.push(`${method} ${url}`),
    () => clock.now,
  );
  const arrive = (method: string, url: string): ServerResponse => {
    const request = Object.assign(new IncomingMessage(new Socket()), { method, url });
    const response = new ServerResponse(request);
    handle(request, response);
    return response;
  };
  return { handled, clock, arrive };
}

describe('reads beside changes', () => {
  test('are answered as they come where nobody changes anything', () => {
    const { handled, arrive } = opened();
    for (const url of ['/a', '/b']) arrive('GET', url);
    expect(handled).toEqual(['GET /a', 'GET /b']);
  });

  test('are answered one in each turn of the loop while a change is under way, in their order', async () => {
    const { handled, arrive } = opened();
    arrive('POST', '/publish');
    for (const url of ['/a', '/b', '/c']) arrive('GET', url);
    expect(handled).toEqual(['POST /publish']);
    await setImmediate();
    expect(handled).toEqual(['POST /publish', 'GET /a']);
    arrive('POST', '/another');
    expect(handled.at(-1)).toBe('POST /another');
    await setImmediate();
    await setImmediate();
    expect(handled.slice(3)).toEqual(['GET /b', 'GET /c']);
  });

  test('do not wait behind thousands that one connection has sent at once', async () => {
    const { handled, arrive } = opened();
    arrive('POST', '/publish');
    for (let index = 0; index < 2_000; index += 1) arrive('GET', '/flood');
    arrive('GET', '/other');
    for (let turns = 0; turns < 100 && !handled.includes('GET /other'); turns += 1) await setImmediate();
    expect(handled).toContain('GET /other');
    for (let turns = 0; turns < 100; turns += 1) await setImmediate();
    expect(handled).toHaveLength(2_002);
  });

  test('are answered as they come again a moment after the last change', () => {
    const { handled, clock, arrive } = opened();
    arrive('POST', '/publish').emit('close');
    clock.now += 1;
    arrive('GET', '/soon');
    expect(handled).not.toContain('GET /soon');
    clock.now += 1_000;
    const other = opened();
    other.arrive('DELETE', '/entry').emit('close');
    other.clock.now += 1_000;
    other.arrive('GET', '/later');
    expect(other.handled).toContain('GET /later');
  });
});
