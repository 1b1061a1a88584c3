import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ProvingTokenSource, SignInState } from '@skep/auth/sign-in/port.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { describe, expect, test } from 'vitest';
import { ask } from '../../doubles/http-client.ts';
import { elsewhere } from '../../doubles/elsewhere.ts';
import { runningProxy } from '../../doubles/running-proxy.ts';
import type { Condition, RemoteToken } from '../backend.ts';

const POST = {
  headers: { 'Content-Type': 'application/json', Authorization: 'Bearer theirs' },
  body: '{"jsonrpc":"2.0","id":7,"method":"x/y"}',
};

type ProvedRequest = Parameters<ProvingTokenSource['headersFor']>[0];

class ScriptedToken implements RemoteToken {
  readonly advice = 'skep auth login far';
  readonly refusals: (string | undefined)[] = [];
  readonly lacks: string[] = [];
  current = 'one';
  nonce = '';
  next: string | undefined;
  fails: SkepError | undefined;
  is: SignInState = 'running';
  isClosed = false;
  #tell = (_state: SignInState): void => {};

  readonly token = async (): Promise<string> => {
    if (this.fails !== undefined) throw this.fails;
    return this.current;
  };

  /** As one that is bound to a key where it begins with `dpop`. */
  readonly headersFor = async ({ method, url }: ProvedRequest): Promise<Record<string, string>> => {
    const token = await this.token();
    if (!token.startsWith('dpop')) return { authorization: `Bearer ${token}` };
    return { authorization: `DPoP ${token}`, dpop: `${method} ${url.pathname} ${this.nonce}` };
  };

  readonly refused = async (
    token: string,
    challenge?: string,
    nonce?: string,
  ): Promise<string | undefined> => {
    this.refusals.push(token, challenge);
    this.nonce = nonce ?? this.nonce;
    if (this.next !== undefined) this.current = this.next;
    return this.next;
  };

  readonly state = (): SignInState => this.is;
  readonly follow = (tell: (state: SignInState) => void): void => void (this.#tell = tell);
  readonly lacking = async (...said: string[]): Promise<string | undefined> => {
    this.lacks.push(...said);
    if (this.next !== undefined) this.current = this.next;
    return this.next;
  };

  keeps: Promise<void> = Promise.resolve();
  readonly close = (): Promise<void> => {
    this.isClosed = true;
    return this.keeps;
  };

  become(state: SignInState): void {
    this.is = state;
    this.#tell(state);
  }
}

/** Takes the one token alone. */
function wants(token: string): (req: IncomingMessage, res: ServerResponse) => void {
  return (req, res) => {
    if (req.headers.authorization === `Bearer ${token}`) res.end('{}');
    else res.writeHead(401, { 'WWW-Authenticate': 'Bearer error="invalid_token"' }).end();
  };
}

describe('a server elsewhere that somebody has signed in to', () => {
  test('is shown the token, in the place of what a client or a header of its person says', async () => {
    await using far = await elsewhere(wants('one'));
    const token = new ScriptedToken();
    await using proxy = await runningProxy({
      backend: far.at('/mcp', { token, headers: { Authorization: 'Basic ours' } }),
    });
    expect((await ask(proxy.url, POST)).status).toBe(200);
    expect(far.requests.map(({ headers }) => headers.authorization)).toEqual(['Bearer one']);
    expect(token.refusals).toEqual([]);
    await proxy.close();
    expect(token.isClosed).toBe(true);
  });

  test('is left when its token has been kept, which is waited for a while', async () => {
    await using far = await elsewhere(wants('one'));
    const clock = manualClock();
    const closing = async (keeps: Promise<void>): Promise<readonly string[]> => {
      const token = Object.assign(new ScriptedToken(), { keeps });
      const proxy = await runningProxy({ backend: far.at('/mcp', { token }) }, { clock });
      const seen: string[] = [];
      const closed = proxy.close().then(() => seen.push('closed'));
      await expect.poll(() => clock.nextIn).toBe(12_000);
      seen.push('waits');
      end.resolve();
      if (keeps !== end.promise) clock.pass(12_000);
      await closed;
      return seen;
    };
    let end = Promise.withResolvers<void>();
    expect(await closing(end.promise)).toEqual(['waits', 'closed']);
    end = Promise.withResolvers<void>();
    expect(await closing(new Promise(() => undefined))).toEqual(['waits', 'closed']);
    expect(clock.waiting).toBe(0);
  });

  test('gets what it refused once more, with a newer token', async () => {
    await using far = await elsewhere(wants('two'));
    const token = new ScriptedToken();
    token.next = 'two';
    await using proxy = await runningProxy({ backend: far.at('/mcp', { token }) });
    expect((await ask(proxy.url, POST)).status).toBe(200);
    expect(far.requests.map(({ body }) => body)).toEqual([POST.body, POST.body]);
    expect(token.refusals).toEqual(['one', 'Bearer error="invalid_token"']);
  });

  test('is shown a proof of its own with each request, where the token is bound to a key', async () => {
    await using far = await elsewhere((req, res) => {
      if (req.url === '/mcp') res.writeHead(307, { Location: '/again' }).end();
      else if (req.headers['dpop']?.includes('n1') === true) res.end('{}');
      else
        res.writeHead(401, { 'WWW-Authenticate': 'DPoP error="use_dpop_nonce"', 'DPoP-Nonce': 'n1' }).end();
    });
    const token = new ScriptedToken();
    token.current = 'dpop-one';
    token.next = 'dpop-one';
    await using proxy = await runningProxy({ backend: far.at('/mcp', { token }) });
    expect((await ask(proxy.url, POST)).status).toBe(200);
    expect(far.requests.map(({ headers }) => [headers.authorization, headers['dpop']])).toEqual([
      ['DPoP dpop-one', 'POST /mcp'],
      ['DPoP dpop-one', 'POST /again'],
      ['DPoP dpop-one', 'POST /mcp n1'],
      ['DPoP dpop-one', 'POST /again n1'],
    ]);
    expect(token.refusals).toEqual(['dpop-one', 'DPoP error="use_dpop_nonce"']);
  });

  test('is asked no third time, and its client is not told to sign in', async () => {
    await using far = await elsewhere(wants('three'));
    const token = new ScriptedToken();
    token.next = 'two';
    const conditions: Condition[] = [];
    const onCondition = (condition: Condition): void => void conditions.push(condition);
    await using proxy = await runningProxy({ backend: far.at('/mcp', { token }) }, { onCondition });
    const answer = await ask(proxy.url, POST);
    expect(answer.status).toBe(401);
    expect(answer.headers['www-authenticate']).toBeUndefined();
    expect(far.requests).toHaveLength(2);
    expect(conditions).toEqual(['unauthenticated']);
  });

  test('is not asked twice what is too large to hold, though the token is renewed', async () => {
    await using far = await elsewhere(wants('two'));
    const token = new ScriptedToken();
    token.next = 'two';
    await using proxy = await runningProxy({ backend: far.at('/mcp', { token }) });
    const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'x/y', params: { of: 'x'.repeat(70_000) } });
    expect((await ask(proxy.url, { ...POST, body })).status).toBe(401);
    expect(far.requests).toHaveLength(1);
    expect((await ask(proxy.url, { ...POST, body })).status).toBe(200);
  });

  test('redirects the token to no other origin', async () => {
    await using other = await elsewhere();
    await using far = await elsewhere((req, res) => {
      if (req.url === '/again') res.end('{}');
      else res.writeHead(307, { Location: req.url === '/mcp' ? '/again' : other.origin }).end();
    });
    const token = new ScriptedToken();
    await using proxy = await runningProxy({ backend: far.at('/mcp', { token }) });
    expect((await ask(proxy.url, POST)).status).toBe(200);
    expect(far.requests.map(({ headers }) => headers.authorization)).toEqual(['Bearer one', 'Bearer one']);
    await using there = await runningProxy({ backend: far.at('/elsewhere', { token }) });
    expect((await ask(there.url, POST)).status).toBe(307);
    expect(other.requests).toEqual([]);
  });

  test('that wants more than the token allows says so to its client and to whoever holds the token', async () => {
    const challenge = 'Bearer error="insufficient_scope", scope="write"';
    await using far = await elsewhere(
      (_req, res) => void res.writeHead(403, { 'WWW-Authenticate': challenge }).end('no'),
    );
    const token = new ScriptedToken();
    await using proxy = await runningProxy({ backend: far.at('/mcp', { token }) });
    const answer = await ask(proxy.url, POST);
    expect(answer).toMatchObject({ status: 403, text: 'no' });
    expect(answer.headers['www-authenticate']).toBeUndefined();
    expect(token.lacks).toEqual(['one', challenge]);
    expect(token.refusals).toEqual([]);
    expect(far.requests).toHaveLength(1);
    token.next = 'two';
    expect((await ask(proxy.url, POST)).status).toBe(403);
    expect(far.requests.slice(1).map(({ headers }) => headers.authorization)).toEqual([
      'Bearer one',
      'Bearer two',
    ]);
    expect(token.lacks).toHaveLength(4);
  });

  test.each([
    ['cannot be refreshed now', 'auth/unavailable', '10', 'the token for the server elsewhere cannot be refreshed now'],
    ['is gone', 'auth/unauthenticated', undefined, 'not signed in to the server: skep auth login far'],
  ] as const)('is not asked while the token %s', async (_how, code, retryAfter, message) => {
    await using far = await elsewhere();
    const token = new ScriptedToken();
    token.fails = new SkepError(code);
    await using proxy = await runningProxy({ backend: far.at('/mcp', { token }) });
    const answer = await ask(proxy.url, POST);
    expect(answer.status).toBe(503);
    expect(answer.headers['retry-after']).toBe(retryAfter);
    expect(answer.headers['www-authenticate']).toBeUndefined();
    expect(JSON.parse(answer.text)).toEqual({ jsonrpc: '2.0', id: 7, error: { code: -32000, message } });
    expect(far.requests).toEqual([]);
  }); // prettier-ignore

  test('is not asked, and few lines say so, however many call', async () => {
    await using far = await elsewhere();
    const token = new ScriptedToken();
    token.fails = new SkepError('auth/unavailable');
    const said: string[] = [];
    const log = { ...silentLog, warn: (_fields: object, message: string) => void said.push(message) };
    log.child = () => log;
    await using proxy = await runningProxy({ backend: far.at('/mcp', { token }) }, { log });
    await Promise.all(Array.from({ length: 30 }, () => ask(proxy.url, POST)));
    await proxy.close();
    expect(said).toHaveLength(11);
    expect(said.at(-1)).toBe('more of the same within a minute');
  });

  test('is as its token is, until the token is good again', async () => {
    await using far = await elsewhere(wants('two'));
    const token = new ScriptedToken();
    const conditions: Condition[] = [];
    const onCondition = (condition: Condition): void => void conditions.push(condition);
    await using proxy = await runningProxy({ backend: far.at('/mcp', { token }) }, { onCondition });
    token.become('auth_retrying');
    // Refused while nothing newer can be had.
    expect((await ask(proxy.url, POST)).status).toBe(401);
    expect(conditions).toEqual(['auth_retrying']);
    expect((await ask(`${proxy.origin}/health`, { method: 'GET' })).text).toContain('"degraded"');
    token.become('unauthenticated');
    token.current = 'two';
    token.become('running');
    expect((await ask(proxy.url, POST)).status).toBe(200);
    expect(conditions).toEqual(['auth_retrying', 'unauthenticated', 'fine']);
  });
});
