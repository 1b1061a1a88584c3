import { once } from 'node:events';
import { request } from 'node:http';
import { parseClaims } from '@skep/auth/claims/claims.ts';
import { signed, signingKey } from '@skep/auth/token/tokens.fixture.ts';
import type { AuditEvent } from '@skep/core/audit/audit-event.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CONTRACT_SWITCHES } from '../access/authority.ts';
import { apiUnderTest, oauthWith, type ApiUnderTest } from '../api/api.fixture.ts';
import type { Route } from '../api/route/route.ts';
import { ROUTES } from '../api/routes.ts';
import { buildSnapshot } from '../engine/snapshot.ts';
import { AUDIT_EVENTS, type AuditRule } from '../config/audit-events.ts';
import { auditRequests } from './audit-requests.ts';

const events: AuditEvent[] = [];
const log = {
  wants: (type: string) => type !== 'server.versions.list',
  record: (event: AuditEvent) => void events.push(event),
  reopen: () => Promise.resolve(),
  close: () => Promise.resolve(),
};

/** Writes nothing; stands for every row with a body and a role. */
const putThing: Route = {
  method: 'PUT',
  listener: 'public',
  paths: ['/v1/things/{name}/versions/{version}'],
  access: { role: 'manageEntries' },
  name: 'putThing',
  audit: { created: 'source.create', otherwise: 'source.update' },
  summary: '',
  path: {},
  query: {},
  body: { description: '', schema: 'Error', limit: 'maxBodySize', maxBytes: 10_000 },
  replies: {},
  handle: (_, { path }) => ({
    status: path['name'] === 'new' ? 201 : 200,
    facts: { claims_before: { org: 'acme' } },
    body: () => '{}',
  }),
};

let api: ApiUnderTest;
let base: string;
let writer: string;
let reader: string;
beforeAll(async () => {
  const key = await signingKey('k1');
  const rules = { manageEntries: [parseClaims({ role: 'writer' })] };
  api = await apiUnderTest({
    snapshot: buildSnapshot([{ name: 'gated', sources: [], claims: '{"org":["acme"]}' }], new Map()),
    auth: oauthWith({ kind: 'full', rules, switches: CONTRACT_SWITCHES }),
    keys: [key],
    routes: [...ROUTES, putThing],
    listener: { observers: [auditRequests(log, { maxBytes: 100 })], requestLog: 'none' },
  });
  base = await api.open.listen();
  writer = await signed(key, { sub: 'u1', email: 'ann@acme.example', role: 'writer', org: 'acme' });
  reader = await signed(key, { sub: 'u2', role: 'reader', org: 'other' });
});
afterAll(() => api.close());

interface Sent {
  readonly method?: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

async function audited(path: string, token?: string, init: Sent = {}): Promise<AuditEvent | undefined> {
  events.length = 0;
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(base + path, { ...init, headers: { ...init.headers, ...authorization } });
  await response.arrayBuffer();
  // The event is written when the connection has let go of the answer; a second request comes after that.
  await (await fetch(`${base}/openapi.json`)).arrayBuffer();
  expect(events.length).toBeLessThanOrEqual(1);
  return events[0];
}

const put = (name: string, body: string, token = writer) =>
  audited(`/v1/things/${name}/versions/1.0.0?secret=x`, token, {
    method: 'PUT',
    body,
    headers: {
      'content-type': 'application/json',
      'user-agent': 'a'.repeat(600),
      'x-forwarded-for': '1.2.3.4',
    },
  });

describe('a request of the table', () => {
  test('is an event with who, what, where and how it ended', async () => {
    const event = await put('na%2Fme', '{"note":"hi","password":"hunter2"}');
    expect(event).toMatchObject({
      type: 'source.update',
      outcome: 'success',
      component: 'skep-registry-api',
      subjects: { sub: 'u1', user: 'ann@acme.example', role: 'manage_entries' },
      target: {
        method: 'PUT',
        path: '/v1/things/na%2Fme/versions/1.0.0',
        resource_type: 'source',
        resource_name: 'na/me',
        version: '1.0.0',
      },
      metadata: { extra: { request_id: 'random-id', status: 200, claims_before: { org: 'acme' } } },
      data: { note: 'hi', password: '[redacted]' },
    });
    expect(event?.source.value).toMatch(/^127\.0\.0\.1:\d+$/u);
    expect(event?.source.extra).toEqual({ x_forwarded_for: '1.2.3.4', user_agent: 'a'.repeat(512) });
  });

  test('is named after what it made where it made something', async () => {
    expect(await put('new', '{}')).toMatchObject({ type: 'source.create', outcome: 'success' });
  });

  test('shows no secret whose name is spelled with escapes that an earlier text has V8 misread', async () => {
    JSON.parse(String.raw`{"before":[],"\\u0070as":0}`);
    expect(await put('a', String.raw`{"before":1,"\u0070assword":"hunter2"}`)).toMatchObject({
      data: { before: 1, password: '[redacted]' },
    });
  });

  test('keeps no body beyond its limit, and says so', async () => {
    const event = await put('a', JSON.stringify({ text: 'x'.repeat(100) }));
    expect(event).not.toHaveProperty('data');
    expect(event?.metadata.extra).toMatchObject({ request_truncated: true, request_bytes: 111 });
  });

  test('is denied where the role is missing', async () => {
    expect(await put('a', '{}', reader)).toMatchObject({
      type: 'source.update',
      outcome: 'denied',
      subjects: { sub: 'u2' },
      metadata: { extra: { status: 403, reason: 'access/forbidden' } },
    });
  });

  test.each([
    ['/registry/gated/v0.1/servers', 'server.list', 'success', { registry_name: 'gated' }],
    ['/gated/v0.1/servers?limit=0', 'server.list', 'failure', { registry_name: 'gated' }],
    [
      '/gated/v0.1/servers/io.acme%2Fweather/versions/latest',
      'server.version.read',
      'failure',
      { registry_name: 'gated', resource_name: 'io.acme/weather', version: 'latest' },
    ],
    [
      '/gated/v0.1/servers/io.acme/weather/versions/1',
      'server.version.read',
      'failure',
      { resource_name: 'io.acme/weather' },
    ],
    ['/v1/me', 'user.info', 'success', { resource_type: 'user' }],
  ])('%s is %s with outcome %s', async (path, type, outcome, target) => {
    expect(await audited(path, writer)).toMatchObject({ type, outcome, target });
  });

  test('is denied where the gate of the registry is not passed', async () => {
    expect(await audited('/gated/v0.1/servers', reader)).toMatchObject({
      type: 'server.list',
      outcome: 'denied',
    });
  });

  test('is left out when nobody wants its event', async () => {
    expect(await audited('/gated/v0.1/servers/a%2Fb/versions', writer)).toBeUndefined();
  });
});

test.each([['/v1/me'], ['/gated/v0.1/servers'], ['/no/such/path']])(
  '%s without a valid token is auth.unauthenticated by nobody known, and the token is nowhere',
  async (path) => {
    const event = await audited(path, 'e30.e30.hunter2');
    expect(event).toMatchObject({
      type: 'auth.unauthenticated',
      outcome: 'denied',
      subjects: { identity: 'unknown' },
      target: { method: 'GET', path },
      // The caller hears none of this.
      metadata: { extra: { reason: 'auth/unauthenticated', cause: 'opaque-not-accepted' } },
    });
    expect(JSON.stringify(event)).not.toContain('hunter2');
  },
);

test.each([['/openapi.json'], ['/.well-known/oauth-protected-resource']])('%s is no event', async (path) => {
  expect(await audited(path)).toBeUndefined();
});

test('an event is written for a caller who goes away', async () => {
  events.length = 0;
  const arrived = once(api.open.server, 'request');
  const stuck = request(`${base}/v1/things/a/versions/1`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${writer}` },
  }).on('error', () => {});
  stuck.write('{');
  await arrived;
  stuck.destroy();
  while (events.length === 0) await (await fetch(`${base}/openapi.json`)).arrayBuffer();
  expect(events[0]).toMatchObject({
    type: 'source.update',
    outcome: 'failure',
    metadata: { extra: { status: 499 } },
  });
});

test('every row that tells about the catalogue or its callers has an event, and every event of a request has a row', () => {
  const named = (rule: AuditRule): string[] =>
    typeof rule === 'string' ? [rule] : [rule.created, rule.otherwise];
  const silent = ROUTES.filter((route) => route.access !== 'public' && route.audit === undefined);
  expect(silent.map(({ name }) => name)).toEqual([]);
  const used = new Set(ROUTES.flatMap(({ audit }) => (audit === undefined ? [] : named(audit))));
  // Of every 401, and of the program itself.
  const withoutRow = ['auth.unauthenticated', 'source.sync', 'config.reconcile', 'config.reload'];
  expect(AUDIT_EVENTS.filter((event) => !used.has(event))).toEqual(withoutRow);
});
