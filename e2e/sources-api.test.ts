import { fetchAll } from '@skep/registry/sources/scripted-client.fixture.ts';
import { readFile } from 'node:fs/promises';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { readCatalogue } from '@skep/core/catalog/registry-file.ts';
import { apiSource } from '@skep/registry/sources/api/api-source.ts';
import { clientOpener, type ClientSettings } from '@skep/registry/sources/open-client.ts';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { fileUrlSource } from '../packages/registry/src/sources/file/file-kind.ts';
import { startRegistryApi, type ApiListed, type RegistryApi } from './fixtures/registry-api.ts';
import { component, sharedData, title } from './require.ts';

const idle = (): AbortSignal => new AbortController().signal;

function listed(name: string, updatedAt: string, extra: object = {}): ApiListed {
  return {
    server: { name, version: '1.0.0', description: 'x', ...extra },
    _meta: { 'io.modelcontextprotocol.registry/official': { status: 'active', updatedAt } },
  } as ApiListed;
}

const SMALL = Array.from({ length: 250 }, (_, index) =>
  listed(
    `io.a/s${String(index).padStart(3, '0')}`,
    new Date(Date.UTC(2026, 0, 1) + index * 3_600_000).toISOString(),
  ),
);

let api: RegistryApi;
beforeEach(async () => {
  api = await startRegistryApi(SMALL);
});
afterEach(() => api.close());

const waits: number[] = [];

function opener(settings: Partial<ClientSettings> = {}) {
  waits.length = 0;
  const sleep = (ms: number) => {
    waits.push(ms);
    return Promise.resolve();
  };
  return clientOpener({
    userAgent: 'skep-registry/test',
    allowPrivate: true,
    retry: { random: () => 0, sleep },
    ...settings,
  });
}

function source(timeoutMs = 5_000) {
  return apiSource({ endpoint: api.origin, timeoutMs }, { open: opener(), now: Date.now });
}

describe('api source', () => {
  test('pages through a registry, then asks for changes only, then not even for those', async () => {
    const mirror = source();
    const first = await fetchAll(mirror, idle());
    expect(readCatalogue(first.bytes, { label: 'a' }).entries).toHaveLength(250);
    expect(api.requests.map(({ path }) => path)).toEqual([
      '/v0.1/servers?limit=100',
      '/v0.1/servers?limit=100&cursor=io.a%2Fs099%3A1.0.0',
      '/v0.1/servers?limit=100&cursor=io.a%2Fs199%3A1.0.0',
    ]);
    expect(api.requests[0]?.headers).toMatchObject({
      'user-agent': 'skep-registry/test',
      accept: 'application/json',
    });
    api.requests.length = 0;

    expect(await mirror.fetch(idle(), first.hash)).toBeUndefined();
    expect(api.requests.map(({ path, status }) => [path, status])).toEqual([
      ['/v0.1/servers?limit=100&updated_since=2026-01-11T08%3A59%3A00.000Z', 200],
    ]);
    expect(await mirror.fetch(idle(), first.hash)).toBeUndefined();
    expect(api.requests.map(({ status }) => status)).toEqual([200, 304]);

    api.items = [listed('io.a/s000', '2026-02-01T00:00:00Z', { description: 'changed' }), ...SMALL.slice(1)];
    const changed = await mirror.fetch(idle(), first.hash);
    const [entry] = readCatalogue(changed?.bytes ?? '', { label: 'a' }).entries;
    expect(entry?.document.description).toBe('changed');
  });

  test('a busy registry is asked again, not sooner than it wants', async () => {
    api.misbehaviour = { kind: 'status', status: 429, times: 2, headers: { 'retry-after': '7' } };
    const { bytes } = await fetchAll(source(), idle());
    expect(readCatalogue(bytes, { label: 'a' }).entries).toHaveLength(250);
    expect(waits).toEqual([7_000, 7_000]);
  });

  test.each([500, 503])('a registry that goes on answering %d fails after three tries', async (status) => {
    api.misbehaviour = { kind: 'status', status, times: 99 };
    await expect(source().fetch(idle())).rejects.toMatchObject({
      code: 'fetch/bad-status',
      message: `"${api.origin}/v0.1/servers" answered with status ${status}`,
    });
    expect(waits).toEqual([500, 1_000]);
    expect(api.requests).toHaveLength(3);
  });

  test('a wait longer than a minute is left to the next interval', async () => {
    api.misbehaviour = { kind: 'status', status: 429, times: 99, headers: { 'retry-after': '3600' } };
    await expect(source().fetch(idle())).rejects.toMatchObject({ code: 'fetch/bad-status' });
    expect(waits).toEqual([]);
  });

  test('a registry that does not know the question fails at once', async () => {
    api.misbehaviour = { kind: 'status', status: 501, times: 99 };
    await expect(source().fetch(idle())).rejects.toMatchObject({ code: 'fetch/bad-status' });
    expect(api.requests).toHaveLength(1);
  });

  test('a cursor that comes back is noticed', async () => {
    api.misbehaviour = { kind: 'cursor-loop' };
    await expect(source().fetch(idle())).rejects.toMatchObject({ code: 'source/endless' });
    expect(api.requests.length).toBeLessThan(5);
  });

  test('a registry that goes silent fails in time', async () => {
    api.misbehaviour = { kind: 'silent' };
    await expect(source(200).fetch(idle())).rejects.toMatchObject({
      code: 'fetch/timeout',
      message: `"${api.origin}/v0.1/servers" did not answer within 200 ms`,
    });
  });

  test('an answer that is cut short loses nothing of what was held', async () => {
    const mirror = source();
    const { hash } = await fetchAll(mirror, idle());
    api.items = SMALL.map((item) => listed(item.server.name, '2026-03-01T00:00:00Z', { description: 'new' }));
    api.requests.length = 0;
    api.misbehaviour = { kind: 'truncated', afterPages: 1 };
    await expect(mirror.fetch(idle(), hash)).rejects.toMatchObject({ code: 'fetch/unreachable' });
    api.misbehaviour = undefined;
    const changed = await mirror.fetch(idle(), hash);
    const { entries } = readCatalogue(changed?.bytes ?? '', { label: 'a' });
    expect(entries.map(({ document }) => document.description)).toEqual(SMALL.map(() => 'new'));
  });

  test('the wrong address is told from an empty registry', async () => {
    const wrong = apiSource({ endpoint: `${api.origin}/v0.1` }, { open: opener(), now: Date.now });
    await expect(wrong.fetch(idle())).rejects.toMatchObject({
      code: 'fetch/bad-status',
      message: `"${api.origin}/v0.1/v0.1/servers" answered with status 404`,
    });
  });

  test('credentials do not follow a redirect to another host', async () => {
    const asked: http.IncomingHttpHeaders[] = [];
    const front = http.createServer((request, response) => {
      asked.push(request.headers);
      response.writeHead(307, { location: `${api.origin}${request.url ?? ''}` }).end();
    });
    front.listen(0, '127.0.0.1');
    await once(front, 'listening');
    try {
      const endpoint = `http://ann:pw@127.0.0.1:${(front.address() as AddressInfo).port}`;
      await apiSource({ endpoint }, { open: opener(), now: Date.now }).fetch(idle());
      expect(asked[0]?.authorization).toBe(`Basic ${Buffer.from('ann:pw').toString('base64')}`);
      expect(api.requests.map(({ headers }) => headers.authorization)).toEqual([
        undefined,
        undefined,
        undefined,
      ]);
    } finally {
      front.closeAllConnections();
      front.close();
    }
  });

  test('private addresses are refused before a request when asked to', async () => {
    const open = opener({ allowPrivate: false });
    const guarded = apiSource({ endpoint: api.origin }, { open, now: Date.now });
    await expect(guarded.fetch(idle())).rejects.toMatchObject({ code: 'fetch/refused-address' });
    const file = fileUrlSource({ url: `${api.origin}/v0.1/servers` }, open);
    await expect(file.fetch(idle())).rejects.toMatchObject({ code: 'fetch/refused-address' });
    expect(api.requests).toEqual([]);
  });
});

describe('file source with a URL', () => {
  test('reads a document once and then asks whether it changed', async () => {
    const file = fileUrlSource({ url: `${api.origin}/v0.1/servers?limit=50` }, opener());
    const { bytes, hash } = await fetchAll(file, idle());
    expect(readCatalogue(bytes, { label: 'a' }).entries).toHaveLength(50);
    expect(await file.fetch(idle(), hash)).toBeUndefined();
    expect(api.requests.map(({ status }) => status)).toEqual([200, 304]);
    api.items = SMALL.slice(0, 10);
    expect((await file.fetch(idle(), hash))?.hash).not.toBe(hash);
  });

  test('a missing document is named', async () => {
    const file = fileUrlSource({ url: `${api.origin}/registry.json?token=secret` }, opener());
    await expect(file.fetch(idle())).rejects.toMatchObject({
      code: 'fetch/bad-status',
      message: `"${api.origin}/registry.json" answered with status 404`,
    });
  });
});

const crawl = await component('shared-data');

describe.skipIf(!crawl.available)(title('the official registry as it was crawled', crawl), () => {
  test('arrives complete and without a changed byte', async () => {
    const file = path.join(sharedData, 'catalog-official/snapshot-2025-12-18.json');
    const recorded: readonly ApiListed[] = JSON.parse(await readFile(file, 'utf8'));
    api.items = recorded;
    const mirror = source();
    const { bytes, hash } = await fetchAll(mirror, idle());
    expect(api.requests).toHaveLength(Math.ceil(recorded.length / 100));

    const byKey = (items: readonly ApiListed[]) =>
      new Map(items.map((item) => [JSON.stringify([item.server.name, item.server.version]), item]));
    const mirrored: { servers: readonly ApiListed[] } = JSON.parse(Buffer.from(bytes).toString('utf8'));
    expect(byKey(mirrored.servers)).toEqual(byKey(recorded));
    expect(mirrored.servers).toHaveLength(byKey(recorded).size);

    const { entries, skippedTotal } = readCatalogue(bytes, { label: 'official' });
    const direct = readCatalogue(JSON.stringify(recorded), { label: 'official' });
    expect(skippedTotal).toBe(direct.skippedTotal);
    expect(new Set(entries.map(({ json }) => json))).toEqual(new Set(direct.entries.map(({ json }) => json)));

    api.requests.length = 0;
    expect(await mirror.fetch(idle(), hash)).toBeUndefined();
    expect(await mirror.fetch(idle(), hash)).toBeUndefined();
    expect(api.requests.map(({ status }) => status)).toEqual([200, 304]);
  });
});
