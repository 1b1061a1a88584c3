import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { AUDIENCE, ISSUER, signed, signingKey } from '@skep/auth/token/tokens.fixture.ts';
import { silentLog, type Log } from '@skep/core/log/log.ts';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { PASS_HEADER } from '../call/pass.ts';
import { ask, postJson, type Answer } from '../doubles/http-client.ts';
import { newSession, runningProxy } from '../doubles/running-proxy.ts';
import { scriptedHttpServer } from '../doubles/scripted-http-server.ts';
import { scriptedServer, type Received } from '../doubles/scripted-server.ts';
import { webhookReceiver, type Answering, type Asked } from '../doubles/webhook-receiver.ts';
import type { ProxyOptions } from '../start.ts';
import type { WebhookSettings } from './webhooks/settings.ts';

type Kind = 'validating' | 'mutating';
const CALL = { jsonrpc: '2.0', id: 'x', method: 'tools/call', params: { name: 'a', arguments: { n: 1 } } };
const isCall = ({ method }: Received): boolean => method === 'tools/call';
const op = (kind: string, path: string, value?: unknown): object => ({
  op: kind,
  path: `/mcp_request${path}`,
  value,
});
const patched =
  (...patch: readonly object[]): Answering =>
  () => ({
    allowed: true,
    patch_type: 'json_patch',
    patch,
  });

interface Outcome {
  readonly answer: Answer;
  readonly called: readonly Received[];
}

/** What becomes of one call. */
async function called(
  kind: Kind,
  answering: Answering,
  more: Partial<WebhookSettings> = {},
  options: Partial<ProxyOptions> & {
    readonly call?: unknown;
    readonly headers?: Record<string, string>;
  } = {},
): Promise<Outcome> {
  // Other messages of the client pass.
  const calls: Answering = (asked) =>
    asked.body.includes('"method":"tools/call"') ? answering(asked) : { allowed: true };
  await using receiver = await webhookReceiver(calls);
  const server = scriptedServer();
  const { call = CALL, headers = {}, parts, ...others } = options;
  const webhooks = { validating: [], mutating: [], [kind]: [receiver.settings(more)] };
  await using proxy = await runningProxy(server, { ...others, parts: { ...parts, webhooks } });
  const answer = await postJson(proxy.url, call, { ...(await newSession(proxy.url)), ...headers });
  return { answer, called: server.received.filter(isCall) };
}

const errorOf = ({ status, text }: Answer) => {
  const { id, error } = JSON.parse(text.replace(/^[\s\S]*data: /u, ''));
  return [status, error?.code, error?.message, id];
};

describe('what webhooks answer', () => {
  const DENIED = [403, 403, 'Request denied by policy', 'x'];
  const REFUSED = [403, 403, 'Request denied by webhook policy', 'x'];
  const FAILED = [500, -32_603, 'Webhook error', 'x'];
  const raw =
    (status: number, body = '{}'): Answering =>
    () =>
    (res) =>
      void res.writeHead(status).end(body);

  test.each<[string, Answering, Partial<Record<Kind, unknown[]>>]>([
    ['a denial', () => ({ allowed: false, message: 'secret reason' }), { validating: DENIED, mutating: REFUSED }],
    ['422', raw(422), { validating: DENIED, mutating: [422, 403, 'Request denied by webhook policy', 'x'] }],
    ['422 that says allowed', raw(422, '{"allowed":true}'), { validating: DENIED, mutating: [422, 403, 'Request denied by webhook policy', 'x'] }],
    ['500', raw(500), { validating: DENIED, mutating: FAILED }],
    ['204', raw(204, ''), { validating: DENIED, mutating: FAILED }],
    ['404', raw(404, '{"allowed":true}'), { validating: DENIED, mutating: FAILED }],
    ['a redirect', () => (res) => void res.writeHead(307, { Location: '/ask?again' }).end(), { validating: DENIED, mutating: FAILED }],
    ['no JSON', raw(200, 'allowed'), { validating: DENIED, mutating: FAILED }],
    ['a list', raw(200, '[{"allowed":true}]'), { validating: DENIED, mutating: FAILED }],
    ['nothing', raw(200, '{}'), { validating: DENIED, mutating: FAILED }],
    ['a text for a truth', raw(200, '{"allowed":"true"}'), { validating: DENIED, mutating: FAILED }],
    ['an answer to another call', raw(200, '{"allowed":true,"uid":"1"}'), { validating: DENIED, mutating: FAILED }],
    ['more than a mebibyte', raw(200, `{"allowed":true,"x":"${'x'.repeat(1024 * 1024)}"}`), { validating: DENIED, mutating: FAILED }],
    ['a cut connection', () => (res) => void res.destroy(), { validating: DENIED, mutating: FAILED }],
  ])('%s', async (name, answering, expected) => {
    const isDenial = name.includes('422') || name === 'a denial';
    for (const kind of ['validating', 'mutating'] as const) {
      const strict = await called(kind, answering);
      expect(errorOf(strict.answer)).toEqual(expected[kind]);
      expect(strict.answer.text).not.toContain('secret');
      expect(strict.called).toEqual([]);
      const lenient = await called(kind, answering, { failurePolicy: 'ignore' });
      expect(lenient.called.length, `${kind} ${name}`).toBe(isDenial ? 0 : 1);
    }
  }); // prettier-ignore

  test('one that does not answer in its time has failed', async () => {
    const { answer } = await called('validating', () => () => {}, { timeoutMs: 50 });
    expect(errorOf(answer)).toEqual(DENIED);
  });

  test('their reasons go to the log', async () => {
    const told: unknown[] = [];
    const log: Log = { ...silentLog, info: (...line) => void told.push(line), child: () => log };
    await called('validating', () => ({ allowed: false, reason: 'budget' }), {}, { log });
    expect(told).toEqual([[{ webhook: 'hook', why: 'budget' }, 'a webhook denied a call']]);
  });
});

describe('what webhooks are asked', () => {
  test('every request and notification, as it is, and who sent it from where', async () => {
    await using receiver = await webhookReceiver(({ said }) => ({ allowed: true, uid: said['uid'] }));
    await using proxy = await runningProxy(scriptedServer(), {
      osUser: 'ann',
      trustProxyHeaders: true,
      parts: { webhooks: { validating: [receiver.settings()], mutating: [] } },
    });
    const text =
      '{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":{"name":"a","x":1.0}}';
    const session = await newSession(proxy.url);
    await postJson(proxy.url, text, { ...session, 'X-Forwarded-For': '192.0.2.7, 10.0.0.1' });
    await ask(proxy.url, { method: 'DELETE', headers: session });
    expect(receiver.asked.map(({ said }) => Reflect.get(Object(said['mcp_request']), 'method'))).toEqual([
      'initialize',
      'notifications/initialized',
      'tools/call',
    ]);
    const last = receiver.asked.at(-1);
    expect(last?.body).toContain(`"mcp_request":${text},`);
    expect(last?.said).toMatchObject({
      version: 'v0.1.0',
      uid: expect.stringMatching(/^[\da-f-]{36}$/),
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      principal: {
        sub: 'ann',
        platform_user_id: 'ann',
        name: 'Local User: ann',
        email: 'ann@localhost',
        groups: [],
        claims: { iss: 'skep-local' },
      },
      context: { server_name: 'test', source_ip: '192.0.2.7', transport: 'stdio' },
    });
    expect(last?.headers['x-skep-signature']).toBeUndefined();
  });

  test('on whose behalf a client calls, where its token says so', async () => {
    const key = await signingKey('k1');
    const keys = createServer((_req, res) => void res.end(JSON.stringify({ keys: [key.jwk] })));
    keys.listen(0, '127.0.0.1');
    await once(keys, 'listening');
    onTestFinished(() => void keys.close());
    const jwksUrl = `http://127.0.0.1:${(keys.address() as AddressInfo).port}/`;
    await using receiver = await webhookReceiver(() => ({ allowed: true }));
    await using proxy = await runningProxy(scriptedServer(), {
      clock: manualClock(),
      signIn: { issuer: ISSUER, jwksUrl, audience: AUDIENCE, allowHttp: true, allowPrivateIP: true },
      parts: { webhooks: { validating: [receiver.settings()], mutating: [] } },
    });
    const act = { iss: 'https://a.test', sub: 'agent', act: { sub: 'tool' } };
    for (const claims of [{ act }, { act: 'agent' }, {}]) {
      const token = await signed(key, { groups: ['g'], ...claims });
      await postJson(proxy.url, CALL, { Authorization: `Bearer ${token}` });
      expect(receiver.asked.at(-1)?.body).not.toContain(token);
    }
    const principals = receiver.asked.map(({ said }) => Object(said['principal']));
    for (const principal of principals)
      expect(principal).toMatchObject({ sub: 'alice', groups: ['g'], claims: { iss: ISSUER } });
    expect(principals).toHaveLength(3);
    expect(principals.map(({ delegation }) => delegation)).toEqual([
      { chain: [{ iss: 'https://a.test', sub: 'agent' }, { sub: 'tool' }], truncated: false },
      { chain: [], truncated: false, malformed: true, malformedReason: 'an actor is no object' },
      undefined,
    ]);
  });

  test('nothing of the process that hosts the proxy, whatever is behind it', async () => {
    await using receiver = await webhookReceiver(() => ({ allowed: false }));
    await using http = await scriptedHttpServer('http');
    await using proxy = await runningProxy(http, {
      parts: { webhooks: { validating: [receiver.settings()], mutating: [] } },
    });
    const initialize = { jsonrpc: '2.0', id: 1, method: 'initialize', params: {} };
    const shown = { [PASS_HEADER]: proxy.pass };
    expect((await postJson(proxy.url, initialize, shown)).status).toBe(200);
    expect(http.headers.at(-1)).not.toHaveProperty(PASS_HEADER);
    expect(receiver.asked).toEqual([]);
    for (const other of [{}, { [PASS_HEADER]: `${proxy.pass}x` }])
      expect((await postJson(proxy.url, initialize, other)).status).toBe(403);
  });

  test('signed, by a value or by a file that may change', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'skep-hmac-'));
    onTestFinished(() => rm(dir, { recursive: true }));
    const file = join(dir, 'key');
    await writeFile(file, 'first\n');
    await using receiver = await webhookReceiver(() => ({ allowed: true }));
    await using proxy = await runningProxy(scriptedServer(), {
      parts: {
        webhooks: {
          mutating: [receiver.settings({ secret: { file } })],
          validating: [receiver.settings({ secret: { value: 'hush' } })],
        },
      },
    });
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
    await postJson(proxy.url, ping);
    await writeFile(file, 'second');
    await postJson(proxy.url, ping);
    for (const [at, key] of ['first\n', 'hush', 'second', 'hush'].entries()) {
      const { headers = {}, body = '' }: Partial<Asked> = receiver.asked[at] ?? {};
      const stamp = String(headers['x-skep-timestamp']);
      expect(Math.abs(Number(stamp) - Date.now() / 1_000)).toBeLessThan(60);
      const expected = createHmac('sha256', key).update(`${stamp}.${body}`).digest('hex');
      expect(headers['x-skep-signature']).toBe(`sha256=${expected}`);
    }
    await rm(file);
    expect((await postJson(proxy.url, ping)).status).toBe(500);
  });

  test('nothing that is too large, or says one thing twice', async () => {
    const large = { ...CALL, params: { name: 'a', x: 'x'.repeat(1024 * 1024) } };
    const twice = '{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"a","name":"b"}}';
    for (const kind of ['validating', 'mutating'] as const) {
      const first = await called(kind, () => ({ allowed: true }), {}, { call: large });
      expect(errorOf(first.answer)).toEqual([413, -32_600, 'Request Entity Too Large', 'x']);
      const second = await called(kind, () => ({ allowed: true }), {}, { call: twice });
      expect(errorOf(second.answer)).toEqual([400, -32_600, 'a member occurs twice in one object', 'x']);
      expect([...first.called, ...second.called]).toEqual([]);
    }
  });
});

describe('what webhooks change', () => {
  test('reaches the server, and no more', async () => {
    const { called: calls } = await called(
      'mutating',
      patched(op('replace', '/params/arguments/n', 2), op('add', '/params/_meta', { by: 'hook' })),
    );
    expect(calls[0]?.params).toEqual({ name: 'a', arguments: { n: 2 }, _meta: { by: 'hook' } });
  });

  test('is seen by the next one, and by those that only judge', async () => {
    const seen: string[] = [];
    await using first = await webhookReceiver(patched(op('add', '/params', { first: 1 })));
    await using second = await webhookReceiver((asked) => {
      seen.push(JSON.stringify(Reflect.get(Object(asked.said['mcp_request']), 'params')));
      return patched(op('add', '/params/second', 2))(asked);
    });
    await using judge = await webhookReceiver((asked) => {
      seen.push(JSON.stringify(Reflect.get(Object(asked.said['mcp_request']), 'params')));
      return { allowed: true };
    });
    await using proxy = await runningProxy(scriptedServer(), {
      parts: {
        webhooks: { mutating: [first.settings(), second.settings()], validating: [judge.settings()] },
      },
    });
    const { text } = await postJson(proxy.url, { jsonrpc: '2.0', id: 1, method: 'x/y' });
    expect(text).toContain('"echo":{"first":1,"second":2}');
    expect(seen).toEqual(['{"first":1}', '{"first":1,"second":2}']);
  });

  test.each<[string, Answering, string]>([
    ['another type', () => ({ allowed: true, patch_type: 'merge', patch: [] }), 'Webhook patch type is not supported'],
    ['no type', () => ({ allowed: true, patch: [op('remove', '/params')] }), 'Webhook patch type is not supported'],
    ['no list', () => ({ allowed: true, patch_type: 'json_patch', patch: {} }), 'Webhook patch is malformed'],
    ['another document', patched({ op: 'add', path: '/principal/sub', value: 'x' }), 'Webhook patch reaches beyond the request'],
    ['what is not there', patched(op('remove', '/params/y')), 'Webhook patch cannot be applied'],
    ['the id', patched(op('replace', '/id', 'y')), 'Webhook patch does not leave the same request'],
    ['the id away', patched(op('remove', '/id')), 'Webhook patch does not leave the same request'],
    ['the version of JSON-RPC', patched(op('replace', '/jsonrpc', '1.0')), 'Webhook patch does not leave the same request'],
    ['the kind of message', patched(op('remove', '/method'), op('add', '/result', {})), 'Webhook patch does not leave the same request'],
    ['the revision', patched(op('add', '/params/_meta', { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} })), 'Webhook patch does not leave the same request'],
  ])('never %s', async (_name, answering, message) => {
    const strict = await called('mutating', answering);
    expect(errorOf(strict.answer)).toEqual([500, -32_603, message, 'x']);
    expect(strict.called).toEqual([]);
    const lenient = await called('mutating', answering, { failurePolicy: 'ignore' });
    expect(lenient.called[0]?.params).toEqual(CALL.params);
  }); // prettier-ignore

  test('is nothing where the patch is empty or absent', async () => {
    for (const more of [{}, { patch: null }, { patch_type: 'json_patch', patch: [] }]) {
      const { called: calls } = await called('mutating', () => ({ allowed: true, ...more }));
      expect(calls[0]?.params).toEqual(CALL.params);
    }
  });

  test('is no call of a tool that clients do not have', async () => {
    const tools = { filter: ['a', 'look'], overrides: { read: { name: 'look' } } };
    const to = (name: string) =>
      called('mutating', patched(op('replace', '/params/name', name)), {}, { parts: { tools } });
    expect((await to('read')).called[0]?.params).toMatchObject({ name: 'read' });
    for (const name of ['hidden', 'look']) {
      const { answer, called: calls } = await to(name);
      expect(errorOf(answer)).toEqual([200, -32_602, 'tool not found', 'x']);
      expect(calls).toEqual([]);
    }
  });
});

test('a setting that cannot be used keeps the proxy from starting', async () => {
  const hook: WebhookSettings = {
    name: 'hook',
    url: 'https://hook.example',
    timeoutMs: 1_000,
    failurePolicy: 'fail',
    verify: true,
  };
  const wrong: [Partial<WebhookSettings>, string][] = [
    [{ caPath: '/nowhere/ca.pem' }, 'CA bundle "/nowhere/ca.pem" does not exist'],
    [
      { certPath: '/nowhere/c.pem', keyPath: '/nowhere/k.pem' },
      'client certificate "/nowhere/c.pem" does not exist',
    ],
    [{ secret: { file: '/nowhere/key' } }, 'HMAC secret "/nowhere/key" does not exist'],
    [{ secret: { value: '' } }, 'the HMAC secret of the webhook "hook" is empty'],
  ];
  for (const [more, message] of wrong) {
    const webhooks = { mutating: [hook], validating: [{ ...hook, ...more }] };
    await expect(runningProxy(scriptedServer(), { parts: { webhooks } })).rejects.toMatchObject({
      code: 'proxy/step-unbuildable',
      message: `--webhook-config: ${message}`,
    });
  }
});
