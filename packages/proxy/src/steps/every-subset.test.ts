import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { AUDIENCE, ISSUER, signed, signingKey, type SigningKey } from '@skep/auth/token/tokens.fixture.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { ask, messagesIn, postJson } from '../doubles/http-client.ts';
import { memorySessionStore } from '../doubles/memory-session-store.ts';
import { parsePrometheus } from '../doubles/prometheus-text.ts';
import { newSession, runningProxy, type RunningProxy } from '../doubles/running-proxy.ts';
import { scriptedHttpServer, type ScriptedHttpServer } from '../doubles/scripted-http-server.ts';
import { isCall } from '../doubles/started-mux.ts';
import { webhookReceiver, type WebhookReceiver } from '../doubles/webhook-receiver.ts';
import type { ProxyOptions } from '../start.ts';
import { auditSettings } from './audit/settings.ts';

// Every step that comes with settings, in every company: what each of them hears, and what becomes of a call, is what the order
// of the chain says (docs/behaviour/proxy.md#the-chain).

const SETTINGS = [
  'signIn',
  'audit',
  'tools',
  'authz',
  'telemetry',
  'webhooks',
  'exchange',
  'rateLimit',
] as const;
type Setting = (typeof SETTINGS)[number];
type On = ReadonlySet<Setting>;

const SUBSETS = Array.from(
  { length: 2 ** SETTINGS.length },
  (_, bits): On => new Set(SETTINGS.filter((_one, at) => (bits >> at) & 1)),
);

type Arguments = { readonly n?: number; readonly deny?: boolean };

/** What a client does. */
interface Probe {
  readonly name: 'often' | 'hidden' | 'main';
  readonly args: Arguments;
  readonly as: 'ann' | 'nobody';
  readonly isBatch?: true;
}

const PROBES: readonly Probe[] = [
  { name: 'main', args: { n: 1 }, as: 'ann' },
  { name: 'main', args: { n: 1 }, as: 'nobody' },
  { name: 'main', args: { n: 1 }, as: 'ann', isBatch: true },
  { name: 'main', args: { n: 1 }, as: 'nobody', isBatch: true },
  { name: 'hidden', args: { n: 1 }, as: 'ann' },
  { name: 'main', args: { n: 1, deny: true }, as: 'ann' },
  { name: 'main', args: { n: 2 }, as: 'ann' },
  { name: 'main', args: { n: 3 }, as: 'ann' },
  { name: 'often', args: { n: 1 }, as: 'ann' },
  { name: 'often', args: { n: 3 }, as: 'ann' },
];

/** What comes of it, and who hears of it on the way. */
interface Outcome {
  readonly status: number;
  readonly code?: number;
  readonly counted: boolean;
  /** By the name of the tool and the number that each was told. */
  readonly hooks: readonly string[];
  readonly server: readonly string[];
}

/** A mutating webhook makes three of two, a validating one denies what says so, and policies permit no three. */
function outcomeOf({ name, args, as, isBatch }: Probe, on: On, calls: Map<string, number>): Outcome {
  const nobody = { counted: false, hooks: [], server: [] };
  if (on.has('signIn') && as === 'nobody') return { ...nobody, status: 401 };
  if (isBatch) return { ...nobody, status: 400, code: -32600 };
  if (on.has('tools') && name === 'hidden') return { ...nobody, status: 200, code: -32602 };
  const real = name === 'main' ? 'read' : name;
  calls.set(real, (calls.get(real) ?? 0) + 1);
  const counted = { ...nobody, counted: true };
  if (on.has('rateLimit') && real === 'often' && calls.get(real) === 2)
    return { ...counted, status: 429, code: 429 };
  const hasHooks = on.has('webhooks');
  const n = hasHooks && args.n === 2 ? 3 : args.n;
  const hooks = hasHooks ? [`mutating ${real} ${args.n}`, `validating ${real} ${n}`] : [];
  if (hasHooks && args.deny) return { ...counted, hooks, status: 403, code: 403 };
  if (on.has('authz') && n === 3) return { ...counted, hooks, status: 403, code: 403 };
  const token = on.has('signIn') && on.has('exchange') ? 'Bearer for-ann' : 'nothing';
  return { ...counted, hooks, status: 200, server: [`${real} ${n} with ${token}`] };
}

let folder: string;
let key: SigningKey;
let origin: string;
let server: ScriptedHttpServer;
const hooked: string[] = [];
let hooks: Readonly<Record<'mutating' | 'validating', WebhookReceiver>>;

const provider = createServer((req, res) => {
  void text(req).then(() => {
    const said = { access_token: 'for-ann', token_type: 'Bearer', issued_token_type: 'x', expires_in: 300 };
    res.writeHead(200, { 'Content-Type': 'application/json' });
    res.end(JSON.stringify(req.url === '/jwks' ? { keys: [key.jwk] } : said));
  });
});

/** Notes the calls that it is asked about. */
function hook(kind: 'mutating' | 'validating'): Promise<WebhookReceiver> {
  return webhookReceiver(({ said }) => {
    const { method, params } = Object(said['mcp_request']);
    if (method !== 'tools/call') return { allowed: true };
    hooked.push(`${kind} ${params.name} ${params.arguments.n}`);
    if (kind === 'validating') return { allowed: params.arguments.deny !== true };
    const patch = [{ op: 'replace', path: '/mcp_request/params/arguments/n', value: 3 }];
    return params.arguments.n === 2 ? { allowed: true, patch_type: 'json_patch', patch } : { allowed: true };
  });
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'skep-subsets-'));
  key = await signingKey('k1');
  provider.listen(0, '127.0.0.1');
  await once(provider, 'listening');
  origin = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
  server = await scriptedHttpServer('http');
  hooks = { mutating: await hook('mutating'), validating: await hook('validating') };
});
afterAll(async () => {
  provider.close();
  await server[Symbol.asyncDispose]();
  for (const one of Object.values(hooks)) await one[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

const POLICIES = [
  'permit(principal, action, resource);',
  'forbid(principal, action, resource) when { context has arg_n && context.arg_n == 3 };',
];

function optionsFor(on: On, auditPath: string): Partial<ProxyOptions> {
  const given = <T>(setting: Setting, value: T): T | undefined => (on.has(setting) ? value : undefined);
  const signIn = { issuer: ISSUER, jwksUrl: `${origin}/jwks`, audience: AUDIENCE, allowHttp: true, allowPrivateIP: true };
  const telemetry = { serviceName: 's', serviceVersion: '1', endpoint: 'none', headers: {}, attributes: {}, tracing: 'off', metrics: 'scraped', scrapes: true, legacyNames: true, environment: {} } as const;
  return {
    osUser: 'ann',
    ...(on.has('signIn') && { signIn }),
    parts: {
      audit: given('audit', auditSettings({}, auditPath)),
      tools: given('tools', { filter: ['look', 'often'], overrides: { read: { name: 'look' } } }),
      authz: given('authz', { document: { version: '1.0', type: 'cedarv1', cedar: { policies: POLICIES } } }),
      telemetry: given('telemetry', telemetry),
      webhooks: given('webhooks', { mutating: [hooks.mutating.settings()], validating: [hooks.validating.settings()] }),
      exchange: given('exchange', { url: `${origin}/token`, plainHttp: 'loopback', subjectTokenType: 'access_token', allowPrivate: true }),
      rateLimit: given('rateLimit', { tools: [{ name: 'often', shared: { maxTokens: 1, refillMs: 3_600_000 } }] }),
    },
  };
} // prettier-ignore

/** Does it, and tells what came of it. */
async function outcome(
  probe: Probe,
  on: On,
  { url }: RunningProxy,
  own: Own,
): Promise<Omit<Outcome, 'counted'>> {
  hooked.length = 0;
  const [heard, shown] = [server.received.length, server.headers.length];
  const name = probe.name !== 'main' ? probe.name : on.has('tools') ? 'look' : 'read';
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: probe.args } };
  const { session, token } = own;
  const headers = { ...session, ...(probe.as === 'ann' && token) };
  const answer = await postJson(url, probe.isBatch ? [call] : call, headers);
  const [said] = answer.status === 401 ? [] : messagesIn(answer).slice(-1);
  const { code } = Object(Object(said).error);
  const posts = server.headers.slice(shown).filter((one) => one['content-type'] !== undefined);
  const tokens = new Set(posts.map(({ authorization = 'nothing' }) => authorization));
  return {
    status: answer.status,
    ...(code !== undefined && { code }),
    hooks: [...hooked],
    server: server.received
      .slice(heard)
      .filter(isCall)
      .map(
        ({ params }) =>
          `${String(params?.['name'])} ${Object(params?.['arguments']).n} with ${Array.from(tokens).join()}`,
      ),
  };
}

interface Own {
  readonly session: { readonly 'Mcp-Session-Id': string };
  readonly token: { readonly Authorization: string } | undefined;
}

async function callsCounted({ origin: at }: RunningProxy): Promise<number> {
  const { text: scraped } = await ask(`${at}/metrics`, { method: 'GET' });
  return parsePrometheus(scraped)
    .filter(({ name, labels }) => name === 'skep_mcp_requests_total' && labels['mcp_method'] === 'tools/call')
    .reduce((sum, { value }) => sum + value, 0);
}

interface Event {
  readonly type: string;
  readonly metadata: { readonly extra: { readonly status: number } };
}

test('in every subset of them each step hears what it is to hear, and no call goes further than it may', async () => {
  const now = Math.floor(Date.now() / 1_000);
  const bearer = { Authorization: `Bearer ${await signed(key, { sub: 'ann', iat: now, exp: now + 3_600 })}` };
  for (const [at, on] of SUBSETS.entries()) {
    const path = join(folder, `${at}.log`);
    const told = Array.from(on).join(', ');
    const expected: Outcome[] = [];
    {
      await using proxy = await runningProxy(server, optionsFor(on, path));
      const token = on.has('signIn') ? bearer : undefined;
      const own = { token, session: await newSession(proxy.url, undefined, token) };
      const calls = new Map<string, number>();
      for (const probe of PROBES) {
        const { counted, ...wanted } = outcomeOf(probe, on, calls);
        expected.push({ counted, ...wanted });
        expect(await outcome(probe, on, proxy, own), `${JSON.stringify(probe)} with ${told}`).toEqual(wanted);
      }
      if (on.has('telemetry'))
        expect(await callsCounted(proxy), told).toBe(expected.filter(({ counted }) => counted).length);
    }
    if (!on.has('audit')) continue;
    const events = (await readFile(path, 'utf8')).trim().split('\n').map((line): Event => JSON.parse(line));
    const statuses = events.slice(2).map(({ metadata }) => metadata.extra.status);
    // After the two of its session; the end of the session is none of the client's.
    expect(statuses, told).toEqual(expected.map(({ status }) => status));
  }
}, 600_000); // prettier-ignore

test('all of them hear the same at a replica that goes on with the session of another', async () => {
  const now = Math.floor(Date.now() / 1_000);
  const bearer = { Authorization: `Bearer ${await signed(key, { sub: 'ann', iat: now, exp: now + 3_600 })}` };
  const on = new Set(SETTINGS);
  const path = join(folder, 'replica.log');
  const sessionStore = memorySessionStore(systemClock);
  const expected: Outcome[] = [];
  {
    await using a = await runningProxy(server, { ...optionsFor(on, join(folder, 'first.log')), sessionStore });
    await using b = await runningProxy(server, { ...optionsFor(on, path), sessionStore });
    const own = { token: bearer, session: await newSession(a.url, undefined, bearer) };
    await a.close();
    const calls = new Map<string, number>();
    for (const probe of PROBES) {
      const { counted, ...wanted } = outcomeOf(probe, on, calls);
      expected.push({ counted, ...wanted });
      expect(await outcome(probe, on, b, own), JSON.stringify(probe)).toEqual(wanted);
    }
    expect(await callsCounted(b)).toBe(expected.filter(({ counted }) => counted).length);
  }
  const events = (await readFile(path, 'utf8')).trim().split('\n').map((line): Event => JSON.parse(line));
  expect(events.map(({ metadata }) => metadata.extra.status)).toEqual(expected.map(({ status }) => status));
}); // prettier-ignore
