import { connect } from 'node:net';
import { createServer } from 'node:http';
import { describe, expect, test } from 'vitest';
import { listen } from '@skep/core/fetch/listen.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { openCallback } from './callback-server.ts';

const EXPECTED = {
  state: 'the state',
  timeoutMs: 5_000,
  clock: systemClock,
  check: (parameters: URLSearchParams) => parameters,
  begin: () => undefined,
};

describe('the server that the browser comes back to', () => {
  test('answers on both loopback addresses, with pages that do nothing and are not kept', async () => {
    await using server = await openCallback(0, systemClock);
    const answer = server.answer(EXPECTED);
    const stray = await fetch(`http://127.0.0.1:${server.port}/callback?state=other&code=x`);
    expect(stray.status).toBe(400);
    const page = await fetch(`http://[::1]:${server.port}/callback?state=the+state&code=x`);
    expect(page.status).toBe(200);
    expect(Object.fromEntries(page.headers)).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'cache-control': 'no-store',
    });
    expect((await answer).get('code')).toBe('x');
    const again = await fetch(`http://127.0.0.1:${server.port}/callback?state=the+state&code=x`);
    expect(again.status).toBe(400);
  });

  test.each([
    ['before anybody waits', 'GET', '/callback?state=the+state&code=x', 404],
    ['elsewhere', 'GET', '/?state=the+state&code=x', 404],
    ['with another method', 'POST', '/callback?state=the+state&code=x', 405],
    ['without a state', 'GET', '/callback?code=x', 400],
    ['with two states', 'GET', '/callback?state=the+state&state=the+state', 400],
    ['with a longer state', 'GET', '/callback?state=the+state+', 400],
  ])('a request %s changes nothing', async (name, method, path, status) => {
    await using server = await openCallback(0, systemClock);
    const address = `http://localhost:${server.port}`;
    const answer = name.startsWith('before') ? undefined : server.answer(EXPECTED);
    const stray = await fetch(address + path, { method });
    expect(stray.status).toBe(status);
    const waiting = answer ?? server.answer(EXPECTED);
    await fetch(`${address}/callback?state=the+state&code=good`);
    expect((await waiting).get('code')).toBe('good');
  });

  test('is there before anything is shown, and gone afterwards, whatever is connected to it', async () => {
    const server = await openCallback(0, systemClock);
    const { port } = server;
    const silent = connect(port, '127.0.0.1');
    await new Promise((resolve) => silent.once('connect', resolve));
    const ended = new Promise((resolve) => silent.once('close', resolve));
    silent.on('error', () => undefined);
    await server[Symbol.asyncDispose]();
    await ended;
    await expect(fetch(`http://127.0.0.1:${port}/callback`)).rejects.toThrow('fetch failed');
  });

  test.each(['127.0.0.1', '::1'])('a port that is taken on %s is named', async (host) => {
    const taken = createServer();
    const port = await listen(taken, host, 0);
    try {
      await expect(openCallback(port, systemClock)).rejects.toMatchObject({
        code: 'auth/callback-port',
        message: expect.stringContaining(String(port)) as string,
      });
    } finally {
      taken.close();
    }
  });

  test('a refused answer is told as text, with nothing of it as markup', async () => {
    await using server = await openCallback(0, systemClock);
    const check = (): never => {
      throw new Error('internals');
    };
    const answer = server.answer({ ...EXPECTED, check });
    const failed = expect(answer).rejects.toThrow('internals');
    const page = await fetch(`http://localhost:${server.port}/callback?state=the+state&error=%3Cscript%3E`);
    expect(page.status).toBe(400);
    const text = await page.text();
    expect(text).not.toContain('script');
    expect(text).not.toContain('internals');
    await failed;
  });
});
