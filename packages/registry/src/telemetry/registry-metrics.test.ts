import { parseClaims } from '@skep/auth/claims/claims.ts';
import { signingKey } from '@skep/auth/token/tokens.fixture.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { ActiveSpan } from '@skep/core/telemetry/active-span.ts';
import { openTelemetry } from '@skep/core/telemetry/open-telemetry.ts';
import type { Telemetry } from '@skep/core/telemetry/telemetry.ts';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CONTRACT_SWITCHES } from '../access/authority.ts';
import { adminUnderTest } from '../api/admin/admin.fixture.ts';
import { apiUnderTest, bearer, oauthWith } from '../api/api.fixture.ts';
import { READ_ROUTES } from '../api/routes.ts';
import { snapshotOf, storedBundle, storedServer } from '../api/snapshot.fixture.ts';
import { buildInfo } from '../config/build-info.ts';
import { countFiltered } from './filtered-entries.ts';
import { measureRequests } from './http-metrics.ts';
import { measurePool, registryMetrics } from './registry-metrics.ts';

let telemetry: Telemetry;
beforeEach(() => {
  telemetry = openTelemetry(
    { serviceName: 'test', serviceVersion: '1', endpoint: 'none', tracing: 'off', metrics: 'on' },
    { log: silentLog, active: new ActiveSpan() },
  );
});
afterEach(() => telemetry.close());

/** Values of a metric by the labels that are its own. */
async function valuesOf(metric: string): Promise<Record<string, number>> {
  const text = (await telemetry.scrape?.()) ?? '';
  const lines = [...text.matchAll(new RegExp(`^${metric}\\{([^}]*)\\} (\\S+)`, 'gmu'))];
  return Object.fromEntries(
    lines.map(([, labels = '', value]) => [
      labels.replaceAll(/,?otel_scope_\w+="[^"]*"/g, '').replaceAll('"', ''),
      Number(value),
    ]),
  );
}

const meterOf = ({ meter }: Telemetry) => {
  if (meter === undefined) throw new Error('no meter');
  return meter;
};

describe('requests', () => {
  const ACME = { claims: '{"org":["acme"]}' };
  const snapshot = snapshotOf(
    {
      high: [storedServer('io.acme/a', ['1.0.0'], ACME), storedServer('io.acme/b', ['1.0.0', '2.0.0'], ACME)],
      low: [
        storedServer('io.acme/a', ['1.0.0'], { claims: '{"org":["other"]}' }),
        storedServer('io.acme/none'),
        storedBundle('skill', ['io.acme', 'triage'], ['1.0.0'], ACME),
      ],
    },
    [{ name: 'all', sources: ['high', 'low'] }],
  );

  const served = async (access: 'full' | 'auth-only') => {
    const key = await signingKey('k1');
    const rules = { superAdmin: [parseClaims({ role: 'root' })] };
    const meter = meterOf(telemetry);
    const api = await apiUnderTest({
      snapshot,
      auth: oauthWith(
        access === 'full' ? { kind: access, rules, switches: CONTRACT_SWITCHES } : { kind: access },
      ),
      keys: [key],
      routes: READ_ROUTES,
      listener: { observers: [measureRequests(meter), countFiltered(meter, () => snapshot)] },
    });
    const base = await api.open.listen();
    return {
      api,
      get: async (url: string, claims: Record<string, unknown>) => {
        const response = await fetch(base + url, { headers: await bearer(key, claims) });
        await response.arrayBuffer();
        return response.status;
      },
      refused: async (token: string) => {
        const headers = token === '' ? {} : { authorization: `Bearer ${token}` };
        await (await fetch(`${base}/v1/me`, { headers })).arrayBuffer();
      },
    };
  };

  test('count the entries that lists leave out for their caller', async () => {
    const { api, get } = await served('full');
    const list = '/registry/all/v0.1/servers';
    await get(list, { org: 'acme' });
    expect(await valuesOf('skep_registry_entries_filtered_total')).toEqual({ 'registry=all,kind=server': 1 });
    // A promoted copy is no hidden name; two of three names are left.
    await get(`${list}?limit=1`, { org: 'other' });
    await get('/all/v0.1/x/dev.skep/skills', { org: 'other' });
    await get(`${list}/io.acme%2Fb/versions`, { org: 'other' });
    await get('/registry/none/v0.1/servers', { org: 'other' });
    await get(list, { role: 'root' });
    expect(await valuesOf('skep_registry_entries_filtered_total')).toEqual({
      'registry=all,kind=server': 3,
      'registry=all,kind=skill': 1,
    });
    await api.close();
  });

  test('leave nothing out where nothing is checked', async () => {
    const { api, get } = await served('auth-only');
    expect(await get('/registry/all/v0.1/servers', { org: 'x' })).toBe(200);
    expect(await valuesOf('skep_registry_entries_filtered_total')).toEqual({});
    await api.close();
  });

  test('without a valid token count by provider and reason', async () => {
    const { api, get, refused } = await served('auth-only');
    await refused('');
    await refused('opaque');
    await get('/v1/me', { exp: 1 });
    await get('/v1/me', { aud: 'others' });
    expect(await valuesOf('skep_registry_auth_failures_total')).toEqual({
      'provider=none,reason=missing': 1,
      'provider=none,reason=opaque-not-accepted': 1,
      'provider=test,reason=expired': 1,
      'provider=test,reason=wrong-audience': 1,
    });
    await api.close();
  });
});

test('refusals for lack of rights are counted by the check that refused', async () => {
  const observers = [measureRequests(meterOf(telemetry))];
  const admin = await adminUnderTest({ listener: { observers } });
  const entry = { name: 'io.acme/x', version: '1.0.0', claims: { org: 'other' } };
  const statuses = [
    await admin.send('GET', '/registry/foreign-all/v0.1/servers', { as: 'reader' }),
    await admin.send('POST', '/registry/foreign-all/v0.1/publish', { as: 'writer', body: entry }),
    await admin.send('POST', '/registry/acme-all/v0.1/publish', { as: 'writer', body: entry }),
    await admin.send('GET', '/v1/sources', { as: 'writer' }),
  ].map(({ statusCode }) => statusCode);
  expect(statuses).toEqual([403, 403, 403, 403]);
  expect(await valuesOf('skep_registry_authz_denials_total')).toEqual({
    'layer=gate': 2,
    'layer=entry': 1,
    'layer=role': 1,
  });
  await admin.close();
});

test('connections to the database are counted as they are at the scrape', async () => {
  let idle = 3;
  measurePool(meterOf(telemetry), () => ({ max: 10, total: 4, idle, waiting: 2 }));
  const pool = 'db_client_connection_pool_name=registry';
  const state = 'db_client_connection_state';
  expect(await valuesOf('db_client_connection_count')).toEqual({
    [`${pool},${state}=idle`]: 3,
    [`${pool},${state}=used`]: 1,
  });
  idle = 0;
  expect(await valuesOf('db_client_connection_count')).toMatchObject({ [`${pool},${state}=used`]: 4 });
  expect(await valuesOf('db_client_connection_max')).toEqual({ [pool]: 10 });
  expect(await valuesOf('db_client_connection_pending_requests')).toEqual({ [pool]: 2 });
});

test('gauges of a source that is gone stay at 0', async () => {
  let sources = ['a', 'b'];
  let now = 1000;
  const metrics = registryMetrics(meterOf(telemetry), {
    sources: () => sources.map((source) => ({ source, entries: { server: 7, skill: 0, plugin: 0 } })),
    now: () => now,
    build: buildInfo({ nodeVersion: 'v24.0.0', platform: 'linux', arch: 'x64' }),
  });
  for (const source of sources) metrics.syncFinished({ source, duration: 1000, outcome: 'success' });
  now = 6000;
  expect(await valuesOf('skep_registry_sync_age_seconds')).toEqual({ 'source=a': 5, 'source=b': 5 });
  expect(await valuesOf('skep_registry_servers')).toEqual({ 'source=a': 7, 'source=b': 7 });
  sources = ['b'];
  expect(await valuesOf('skep_registry_sync_age_seconds')).toEqual({ 'source=a': 0, 'source=b': 5 });
  expect(await valuesOf('skep_registry_servers')).toEqual({ 'source=a': 0, 'source=b': 7 });
});
