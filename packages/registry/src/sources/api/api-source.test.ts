import { readCatalogue } from '@skep/core/catalog/registry-file.ts';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { apiSource } from './api-source.ts';
import { DEFAULT_LIMITS } from '../../shape/limits.ts';
import {
  fetchAll,
  type ScriptedAnswer,
  type ScriptedRequest,
  scriptedClient,
} from '../scripted-client.fixture.ts';

const OFFICIAL = 'io.modelcontextprotocol.registry/official';
const HOUR = 3_600_000;
const idle = new AbortController().signal;

interface Listed {
  readonly name: string;
  readonly version?: string;
  /** Seconds after the beginning of 2026. */
  readonly at?: number;
  readonly status?: string;
  readonly text?: string;
}

const timeOf = (at: number): string => new Date(Date.UTC(2026, 0, 1) + at * 1_000).toISOString();

function itemOf({ name, version = '1.0.0', at, status = 'active', text = 'x' }: Listed): unknown {
  const official = at === undefined ? { status } : { status, updatedAt: timeOf(at) };
  return { server: { name, version, description: text }, _meta: { [OFFICIAL]: official } };
}

/** A registry that pages and knows `updated_since`, as the API describes them. */
function registry(list: { items: readonly Listed[] }, { pageSize = 2, etag = false } = {}) {
  return (request: ScriptedRequest) => {
    const { searchParams } = request.url;
    const since = searchParams.get('updated_since');
    const items = list.items.filter(({ at = 0 }) => since === null || timeOf(at) >= since);
    const from = Number(searchParams.get('cursor') ?? 0);
    const more = from + pageSize < items.length ? { nextCursor: String(from + pageSize) } : {};
    const body = JSON.stringify({
      servers: items.slice(from, from + pageSize).map(itemOf),
      metadata: { count: items.length, ...more },
    });
    const tag = `"${body.length}-${from}"`;
    if (etag && request.headers['if-none-match'] === tag) return { status: 304 };
    return { body, ...(etag ? { headers: { etag: tag } } : {}) };
  };
}

/** Questions for skills and plugins are answered by `vendor` and not among the requests. */
function started(
  answer: Parameters<typeof scriptedClient>[0],
  vendor: (url: URL) => ScriptedAnswer = () => ({ status: 404 }),
  holdsBundles = false,
) {
  const client = scriptedClient((request, index) => {
    if (!request.url.pathname.includes('/x/')) return answer(request, index);
    client.requests.pop();
    return vendor(request.url);
  });
  let time = Date.UTC(2026, 0, 2);
  const source = apiSource(
    { endpoint: 'https://ann:pw@r.example/registry/main/', holdsBundles },
    { open: client.opener, now: () => time },
  );
  return { ...client, source, pass: (ms: number) => (time += ms) };
}

function namesIn(bytes: Uint8Array | undefined): readonly string[] {
  if (bytes === undefined) return [];
  const { entries, format } = readCatalogue(bytes, { label: 'a' });
  expect(format).toBe('official-list');
  return entries.map(({ name, version, document }) => `${name}@${version} ${document.description ?? ''}`);
}

test('reads all pages into one list that the catalogue reader takes', async () => {
  const items = ['io.b/2', 'io.a/1', 'io.c/3', 'io.a/0', 'io.d/4'].map((name, at) => ({ name, at }));
  const { source, requests, stillOpen, limits } = started(registry({ items }));
  const { bytes } = await fetchAll(source, idle);
  expect(namesIn(bytes).map((line) => line.split('@')[0])).toEqual([
    'io.a/0',
    'io.a/1',
    'io.b/2',
    'io.c/3',
    'io.d/4',
  ]);
  expect(requests.map(({ url }) => url.href)).toEqual([
    'https://r.example/registry/main/v0.1/servers?limit=100',
    'https://r.example/registry/main/v0.1/servers?limit=100&cursor=2',
    'https://r.example/registry/main/v0.1/servers?limit=100&cursor=4',
  ]);
  expect(requests[2]?.headers).toMatchObject({
    authorization: `Basic ${Buffer.from('ann:pw').toString('base64')}`,
  });
  expect(source.label).toBe('https://r.example/registry/main/v0.1/servers');
  expect(limits).toEqual([{ timeoutMs: 10_000, maxBytes: 33_554_432 }]);
  expect(stillOpen()).toBe(0);
});

test('documents arrive byte for byte', async () => {
  const item =
    '{"server":{"name":"io.a/b","version":"1.0.0","description":"x", "n":1.0,"big":123456789012345678901}}';
  const { source } = started(() => ({ body: `{"servers":[${item}]}` }));
  const { bytes } = await fetchAll(source, idle);
  expect(Buffer.from(bytes).toString()).toBe(`{"servers":[${item}],"metadata":{"count":1}}`);
});

test('deleted versions are hidden', async () => {
  const { source } = started(
    registry({ items: [{ name: 'io.a/b' }, { name: 'io.a/c', status: 'deleted' }] }),
  );
  expect(namesIn((await fetchAll(source, idle)).bytes)).toEqual(['io.a/b@1.0.0 x']);
});

describe('looking again', () => {
  const before: readonly Listed[] = [
    { name: 'io.a/a', at: 10 },
    { name: 'io.a/b', at: 1_000 },
    { name: 'io.a/c', at: 2_000 },
  ];

  test('asks for what changed, with some overlap, and merges it', async () => {
    const list = { items: before };
    const { source, requests } = started(registry(list, { pageSize: 10 }));
    const { hash } = await fetchAll(source, idle);
    list.items = [
      { name: 'io.a/a', at: 3_000, text: 'new' },
      { name: 'io.a/b', at: 3_001, status: 'deleted' },
      { name: 'io.a/c', at: 2_000 },
      { name: 'io.a/d', at: 3_002 },
    ];
    const changed = await source.fetch(idle, hash);
    expect(requests[1]?.url.searchParams.get('updated_since')).toBe(timeOf(2_000 - 60));
    expect(namesIn(changed?.bytes)).toEqual(['io.a/a@1.0.0 new', 'io.a/c@1.0.0 x', 'io.a/d@1.0.0 x']);
    expect(await source.fetch(idle, changed?.hash ?? '')).toBeUndefined();
    expect(requests[2]?.url.searchParams.get('updated_since')).toBe(timeOf(3_002 - 60));
  });

  test('what vanished without a word is noticed by the next full look', async () => {
    const list = { items: before };
    const { source, requests, pass } = started(registry(list, { pageSize: 10 }));
    const { hash } = await fetchAll(source, idle);
    list.items = before.slice(1);
    pass(6 * HOUR - 1);
    expect(await source.fetch(idle, hash)).toBeUndefined();
    pass(1);
    const changed = await source.fetch(idle, hash);
    expect(requests.at(-1)?.url.searchParams.has('updated_since')).toBe(false);
    expect(namesIn(changed?.bytes)).toEqual(['io.a/b@1.0.0 x', 'io.a/c@1.0.0 x']);
  });

  test.each([400, 404, 422, 501])(
    'a registry that answers the question for changes with %d is read whole',
    async (status) => {
      const list = { items: before };
      const server = registry(list);
      const { source, requests } = started((request) =>
        request.url.searchParams.has('updated_since') ? { status } : server(request),
      );
      const { hash } = await fetchAll(source, idle);
      list.items = [...before, { name: 'io.a/d', at: 3_000 }];
      expect(namesIn((await source.fetch(idle, hash))?.bytes)).toContain('io.a/d@1.0.0 x');
      list.items = before.slice(1);
      expect(namesIn((await source.fetch(idle, hash))?.bytes)).toEqual(['io.a/b@1.0.0 x', 'io.a/c@1.0.0 x']);
      expect(requests.filter(({ url }) => url.searchParams.has('updated_since'))).toHaveLength(2);
    },
  );

  test.each([401, 403, 500])('a registry that answers it with %d fails', async (status) => {
    const server = registry({ items: before });
    const { source } = started((request) =>
      request.url.searchParams.has('updated_since') ? { status } : server(request),
    );
    const { hash } = await fetchAll(source, idle);
    await expect(source.fetch(idle, hash)).rejects.toMatchObject({ detail: { status } });
  });

  test('a change dated far ahead does not hide the real ones', async () => {
    const list = { items: [...before, { name: 'io.a/future', at: 100 * 365 * 86_400 }] };
    const { source, requests } = started(registry(list, { pageSize: 10 }));
    const { hash } = await fetchAll(source, idle);
    list.items = [...list.items, { name: 'io.a/d', at: 3_000 }];
    expect(namesIn((await source.fetch(idle, hash))?.bytes)).toContain('io.a/d@1.0.0 x');
    expect(requests[1]?.url.searchParams.has('updated_since')).toBe(false);
  });

  test('changes cannot make the list grow without end', async () => {
    let round = 0;
    const { opener } = scriptedClient(() => {
      round += 1;
      const item = itemOf({ name: `io.a/r${round}`, at: round, text: 'x'.repeat(500) });
      return { body: JSON.stringify({ servers: [item] }) };
    });
    const source = apiSource(
      { endpoint: 'https://r.example', limits: { ...DEFAULT_LIMITS, maxCatalogueSize: 1_500 } },
      { open: opener, now: () => Date.UTC(2026, 0, 2) },
    );
    const { hash } = await fetchAll(source, idle);
    const grown = await source.fetch(idle, hash);
    expect(namesIn(grown?.bytes)).toHaveLength(2);
    await expect(source.fetch(idle, hash)).rejects.toMatchObject({ code: 'source/too-large' });
    await expect(source.fetch(idle, hash)).rejects.toMatchObject({ code: 'source/too-large' });
  });

  test('reads everything again while one item does not say when it changed', async () => {
    const list = { items: [...before, { name: 'io.a/silent' }] };
    const { source, requests } = started(registry(list));
    const { hash } = await fetchAll(source, idle);
    expect(await source.fetch(idle, hash)).toBeUndefined();
    list.items = list.items.slice(2);
    expect(namesIn((await source.fetch(idle, hash))?.bytes)).toEqual([
      'io.a/c@1.0.0 x',
      'io.a/silent@1.0.0 x',
    ]);
    expect(requests.some(({ url }) => url.searchParams.has('updated_since'))).toBe(false);
  });

  test('an unchanged list costs one request that is answered without a body', async () => {
    const { source, requests } = started(registry({ items: before }, { pageSize: 10, etag: true }));
    const first = await fetchAll(source, idle);
    expect(await source.fetch(idle, first.hash)).toBeUndefined();
    // An ETag is about one address: that of the whole list says nothing about the list of changes.
    expect(requests[1]?.headers).not.toHaveProperty('if-none-match');
    requests.length = 0;
    expect(await source.fetch(idle, first.hash)).toBeUndefined();
    expect(requests).toHaveLength(1);
    expect(requests[0]?.headers).toHaveProperty('if-none-match');
    // Who asks without holding anything gets the list all the same.
    expect(await fetchAll(source, idle)).toEqual(first);
    expect(await source.fetch(idle, 'other')).toEqual(first);
  });

  test('the first of several pages is never taken for the whole list', async () => {
    const list = { items: before.map(({ name }) => ({ name })) };
    const { source, requests } = started(registry(list, { pageSize: 2, etag: true }));
    const { hash } = await fetchAll(source, idle);
    list.items = [...list.items.slice(0, 2), { name: 'io.a/z' }];
    expect(namesIn((await source.fetch(idle, hash))?.bytes)).toContain('io.a/z@1.0.0 x');
    expect(requests.some(({ headers }) => 'if-none-match' in headers)).toBe(false);
  });

  test('a look that fails halfway changes nothing that is remembered', async () => {
    const list = { items: before };
    let broken = false;
    const server = registry(list, { pageSize: 2 });
    const { source, stillOpen } = started((request) =>
      broken && request.url.searchParams.has('cursor') ? { status: 500 } : server(request),
    );
    const { hash } = await fetchAll(source, idle);
    list.items = before.map((item, index) => ({ ...item, at: 5_000 + index, text: 'new' }));
    broken = true;
    await expect(source.fetch(idle, hash)).rejects.toMatchObject({ code: 'fetch/bad-status' });
    expect(stillOpen()).toBe(0);
    broken = false;
    expect(namesIn((await source.fetch(idle, hash))?.bytes)).toEqual([
      'io.a/a@1.0.0 new',
      'io.a/b@1.0.0 new',
      'io.a/c@1.0.0 new',
    ]);
  });

  test('gathered by changes or read whole, the list and its hash are the same', async () => {
    const listed = fc.record({
      name: fc.constantFrom('io.a/a', 'io.a/b', 'io.a/c'),
      version: fc.constantFrom('1.0.0', '1.1.0'),
      status: fc.constantFrom('active', 'deprecated', 'deleted'),
      text: fc.constantFrom('x', 'y'),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(listed), { minLength: 1, maxLength: 6 }), async (rounds) => {
        const now = new Map<string, Listed>([['start', { name: 'io.a/start', at: 0 }]]);
        const list = { items: [...now.values()] };
        const kept = started(registry(list));
        let at = 0;
        for (const round of rounds) {
          for (const change of round)
            now.set(`${change.name}@${change.version}`, { ...change, at: (at += 100) });
          list.items = [...now.values()];
          await kept.source.fetch(idle);
        }
        expect(await fetchAll(kept.source, idle)).toEqual(
          await fetchAll(started(registry(list)).source, idle),
        );
      }),
      { numRuns: 50 },
    );
  });
});

describe('skills and plugins', () => {
  const skill = (name: string, version = '1.0.0', more: object = {}): object => ({
    namespace: 'io.a',
    name,
    version,
    description: 'd',
    ...more,
  });
  const servers = registry({ items: [{ name: 'io.a/b', at: 10 }] });
  const kindsIn = (bytes: Uint8Array | undefined): string[] =>
    readCatalogue(bytes ?? Buffer.from('[]'), { label: 'a' }).entries.map(
      ({ kind, name, version }) => `${kind} ${name}@${version}`,
    );

  test.each(['dev.skep', 'dev.toolhive'])('are read where servers list them: x/%s', async (vendor) => {
    const { source } = started(servers, ({ pathname, searchParams }) => {
      if (!pathname.includes(`/v0.1/x/${vendor}/`)) return { status: 404 };
      const list = pathname.endsWith('/skills') ? 'skills' : 'plugins';
      const page = Number(searchParams.get('cursor') ?? 0);
      const items =
        list === 'skills'
          ? [skill('one', '1.0.0', { isLatest: true, id: 'x' }), skill('two')]
          : [skill('three')];
      const metadata = page + 1 < items.length ? { nextCursor: String(page + 1) } : {};
      return { body: JSON.stringify({ [list]: items.slice(page, page + 1), metadata }) };
    });
    const { bytes } = await fetchAll(source, idle);
    expect(kindsIn(bytes)).toEqual([
      'server io.a/b@1.0.0',
      'skill one@1.0.0',
      'skill two@1.0.0',
      'plugin three@1.0.0',
    ]);
    // What the other registry says about its own copy is no part of the document.
    expect(Buffer.from(bytes).toString()).not.toContain('isLatest');
  });

  test('are looked at again each time, and a change of theirs is a change of the source', async () => {
    let skills = [skill('one')];
    const { source } = started(servers, ({ pathname }) =>
      pathname.endsWith('dev.skep/skills') ? { body: JSON.stringify({ skills }) } : { status: 404 },
    );
    const { hash } = await fetchAll(source, idle);
    expect(await source.fetch(idle, hash)).toBeUndefined();
    skills = [skill('one'), skill('new')];
    const changed = await source.fetch(idle, hash);
    expect(kindsIn(changed?.bytes)).toContain('skill new@1.0.0');
  });

  test.each([500, 401])('are not lost because the registry answers %d for a while', async (status) => {
    let broken = false;
    const { source } = started(servers, ({ pathname }) => {
      if (!pathname.endsWith('dev.skep/skills')) return { status: 404 };
      return broken ? { status } : { body: JSON.stringify({ skills: [skill('one')] }) };
    });
    const { hash } = await fetchAll(source, idle);
    broken = true;
    await expect(source.fetch(idle, hash)).rejects.toMatchObject({ code: 'fetch/bad-status' });
    broken = false;
    expect(await source.fetch(idle, hash)).toBeUndefined();
  });

  test.each([
    ['400', { status: 400 }],
    ['401', { status: 401 }],
    ['403', { status: 403 }],
    ['405', { status: 405 }],
    ['422', { status: 422 }],
    ['501', { status: 501 }],
    ['a page for people', { body: '<html>' }],
    ['a list that is none', { body: '{"skills":"later"}' }],
    ['no object', { body: '[]' }],
  ])(
    'a first look that is answered %s fails while skills of an earlier run are stored, lest they go',
    async (_what, answer) => {
      await expect(started(servers, () => answer, true).source.fetch(idle)).rejects.toThrow();
      // Where none are stored, it is a registry that does not have them, whose servers are read.
      expect(kindsIn((await fetchAll(started(servers, () => answer).source, idle)).bytes)).toEqual([
        'server io.a/b@1.0.0',
      ]);
    },
  );

  test.each([
    ['404', { status: 404 }],
    ['410', { status: 410 }],
    ['something else', { body: '{"servers":[]}' }],
  ])(
    'are not there where the registry answers %s, and are not asked for at each look',
    async (_what, answer) => {
      let asked = 0;
      const { source, pass } = started(servers, () => {
        asked += 1;
        return answer;
      });
      const { bytes, hash } = await fetchAll(source, idle);
      expect(kindsIn(bytes)).toEqual(['server io.a/b@1.0.0']);
      expect(asked).toBe(4);
      await source.fetch(idle, hash);
      expect(asked).toBe(4);
      pass(6 * HOUR);
      await source.fetch(idle, hash);
      expect(asked).toBe(8);
    },
  );
});

describe('a registry that misbehaves', () => {
  const page = (cursor: string) => ({ body: `{"servers":[],"metadata":{"nextCursor":"${cursor}"}}` });

  test('a cursor that comes back ends the look', async () => {
    const { source, requests } = started((_request, index) => page(['a', 'b', 'a'][index % 3] ?? ''));
    await expect(source.fetch(idle)).rejects.toMatchObject({
      code: 'source/endless',
      message: 'the pages of "https://r.example/registry/main/v0.1/servers" come back to the cursor "a"',
    });
    expect(requests).toHaveLength(3);
  });

  test('pages without an end are cut off', async () => {
    const { source, requests } = started((_request, index) => page(String(index)));
    await expect(source.fetch(idle)).rejects.toMatchObject({ code: 'source/endless' });
    expect(requests).toHaveLength(1_000);
  });

  test('too many servers are refused', async () => {
    const servers = Array.from({ length: 20_000 }, () => '{}').join(',');
    const { source } = started((_request, index) => ({
      body: `{"servers":[${servers}],"metadata":{"nextCursor":"${index}"}}`,
    }));
    await expect(source.fetch(idle)).rejects.toMatchObject({ code: 'source/too-large' });
  });

  test.each([201, 304])('the status %s is no list', async (status) => {
    await expect(started(() => ({ status })).source.fetch(idle)).rejects.toMatchObject({
      code: 'source/bad-answer',
      message: `"https://r.example/registry/main/v0.1/servers" answered with status ${status} instead of a list`,
    });
  });

  test('a broken later page is named by its number', async () => {
    const { source } = started((_request, index) => (index === 0 ? page('a') : { body: '<html>' }));
    await expect(source.fetch(idle)).rejects.toMatchObject({
      code: 'catalog/not-json',
      message: expect.stringContaining('v0.1/servers (page 2)'),
    });
  });
});

test("the caller's signal ends the look", async () => {
  const abort = new AbortController();
  const { source, stillOpen } = started(() => {
    abort.abort(new Error('enough'));
    return { body: '{"servers":[],"metadata":{"nextCursor":"a"}}' };
  });
  await expect(source.fetch(abort.signal)).rejects.toThrow('enough');
  expect(stillOpen()).toBe(0);
});

test('an endpoint of slashes, as anybody who manages sources may name it, holds nobody up', () => {
  const endpoint = `https://r.example/${'/'.repeat(200_000)}x`;
  const began = performance.now();
  apiSource({ endpoint }, { open: scriptedClient(() => ({})).opener, now: () => 0 });
  // By the square of the slashes it is half a minute.
  expect(performance.now() - began).toBeLessThan(5_000);
});

test.each(['nonsense', 'file:///x', ''])('%j is no endpoint', (endpoint) => {
  expect(() => apiSource({ endpoint }, { open: scriptedClient(() => ({})).opener, now: () => 0 })).toThrow(
    expect.objectContaining({ code: 'fetch/invalid-url' }),
  );
});
