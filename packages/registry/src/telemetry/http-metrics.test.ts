import { ActiveSpan } from '@skep/core/telemetry/active-span.ts';
import { openTelemetry } from '@skep/core/telemetry/open-telemetry.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CONTRACT_SWITCHES } from '../access/authority.ts';
import { apiUnderTest, oauthWith, type ApiUnderTest } from '../api/api.fixture.ts';
import { buildSnapshot } from '../engine/snapshot.ts';
import { measureRequests, limitedScrapes } from './http-metrics.ts';

const telemetry = openTelemetry(
  { serviceName: 'test', serviceVersion: '1', endpoint: 'none', tracing: 'off', metrics: 'on' },
  { log: silentLog, active: new ActiveSpan() },
);
let api: ApiUnderTest;
let base: string;
beforeAll(async () => {
  const observers = telemetry.meter === undefined ? [] : [measureRequests(telemetry.meter)];
  api = await apiUnderTest({
    snapshot: buildSnapshot([], new Map()),
    auth: oauthWith({ kind: 'full', rules: {}, switches: CONTRACT_SWITCHES }),
    listener: { observers, requestLog: 'none' },
  });
  base = await api.open.listen();
});
afterAll(async () => {
  await api.close();
  await telemetry.close();
});

test('counts refused tokens by reason and keeps labels few whatever callers write', async () => {
  const headers = { authorization: 'Bearer nonsense' };
  for (const path of ['/v1/me', '/a/b/c', '/a/b/d', '/x/v0.1/servers']) {
    await (await fetch(base + path, { headers })).arrayBuffer();
  }
  await (await fetch(`${base}/openapi.json`, { method: 'PROPFIND' })).arrayBuffer();
  await (await fetch(`${base}/openapi.json`)).arrayBuffer();
  const text = (await telemetry.scrape?.()) ?? '';
  expect(text).toMatch(
    /^skep_registry_auth_failures_total\{provider="none",reason="opaque-not-accepted"[^}]*\} [45]$/mu,
  );
  const routes = new Set([...text.matchAll(/http_route="([^"]*)"/gu)].map(([, route]) => route));
  expect(routes).toEqual(new Set(['/v1/me', 'unknown_route', '/{registry}/v0.1/servers', '/openapi.json']));
  expect(text).toContain('http_request_method="_OTHER"');
  expect(text).not.toContain('PROPFIND');
  expect(text).toMatch(/^http_server_active_requests\{http_request_method="GET"[^}]*\} 0$/mu);
});

test('answers two scrapes at once and refuses the third', async () => {
  const waiting: ((text: string) => void)[] = [];
  const scrape = limitedScrapes(() => new Promise((resolve) => waiting.push(resolve)));
  const [first, second] = [scrape(), scrape()];
  await expect(scrape()).rejects.toBeInstanceOf(SkepError);
  for (const answer of waiting) answer('text');
  expect(await Promise.all([first, second])).toEqual(['text', 'text']);
  const next = scrape();
  waiting.at(-1)?.('later');
  expect(await next).toBe('later');
});
