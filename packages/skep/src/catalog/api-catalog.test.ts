import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Client } from '@skep/core/fetch/client.ts';
import { describe, expect, test } from 'vitest';
import { apiCatalog } from './api-catalog.ts';

const signal = new AbortController().signal;
const ENTRY = { name: 'io.example/everything', version: '1.0.0', description: 'x' };

/** A registry that answers the exact name and the search as told: with a status, or with what it found. */
function registry(exact: number | object, search: number | readonly object[] = []) {
  const asked: string[] = [];
  const failing = (status: number): never => {
    const message = `"http://r.example" answered with status ${status}: too short`;
    throw new SkepError('fetch/bad-status', { message, detail: { status } });
  };
  const getJson = async (url: string): Promise<unknown> => {
    asked.push(url);
    if (url.includes('/versions/')) return typeof exact === 'number' ? failing(exact) : { server: exact };
    if (typeof search === 'number') return failing(search);
    return { servers: search.map((server) => ({ server })), metadata: {} };
  };
  const client = { getJson, close: async () => undefined } as Pick<Client, 'getJson' | 'close'> as Client;
  const catalog = apiCatalog('http://r.example', client);
  return {
    asked,
    find: (name: string) => catalog.find(name, signal),
    search: (query: string) => catalog.list({ search: query, signal }),
  };
}

describe('a registry of another maker', () => {
  test.each(['skep-test/tiny:1', 'ghcr.io/org/image', 'image@sha256:0a', 'a/b/c', '-x', 'a b'])(
    'is not asked for what cannot be the name of a server, so that it cannot stop it from being an image: %s',
    async (name) => {
      const other = registry(400, 400);
      expect(await other.find(name)).toBeUndefined();
      expect(other.asked).toEqual([]);
    },
  );
  test.each([400, 404, 422])('that answers %d to a short name is searched for it', async (status) => {
    expect(await registry(status, [ENTRY]).find('everything')).toMatchObject({ name: ENTRY.name });
    expect(await registry(status).find('everything')).toBeUndefined();
  });
  test.each([400, 422])(
    'that answers %d to the search for a short name says why, and the name becomes nothing else',
    async (status) => {
      const found = registry(422, status).find('ab');
      await expect(found).rejects.toMatchObject({
        code: 'target/not-found',
        message: expect.stringContaining('too short'),
        hint: expect.stringContaining('full name'),
      });
    },
  );
  test('that has no server of a full name need not like to search for its end', async () => {
    expect(await registry(404, 422).find('org/ab')).toBeUndefined();
  });
  test.each([400, 401, 403, 422, 500, 503])('that answers %d to a full name is an error', async (status) => {
    await expect(registry(status).find('mcp/everything')).rejects.toMatchObject({ detail: { status } });
  });
  test.each([401, 403, 404, 500])('whose search fails with %d is an error', async (status) => {
    await expect(registry(404, status).find('mcp/everything')).rejects.toMatchObject({ detail: { status } });
    await expect(registry(404, status).find('everything')).rejects.toMatchObject({ detail: { status } });
  });
  test.each([401, 403, 500])('that answers %d to a short name is an error', async (status) => {
    await expect(registry(status, [ENTRY]).find('everything')).rejects.toMatchObject({ detail: { status } });
  });

  test('is asked for the longest word of a search, and for everything where none has it', async () => {
    const other = registry(404, [ENTRY]);
    expect(await other.search('every everything x')).toMatchObject([{ name: ENTRY.name }]);
    const none = registry(404);
    expect(await none.search('evrything')).toEqual([]);
    const searched = [...other.asked, ...none.asked].map((url) => new URL(url).searchParams.get('search'));
    expect(searched).toEqual(['everything', 'evrything', null]);
  });
  test('is read page by page, the latest versions alone', async () => {
    const asked: string[] = [];
    const getJson = async (url: string) => {
      asked.push(url);
      const metadata = asked.length < 3 ? { nextCursor: `io.a/${asked.length}:1` } : {};
      return { servers: [{ server: { ...ENTRY, name: `io.example/${asked.length}` } }], metadata };
    };
    const client = { getJson, close: async () => undefined } as Pick<Client, 'getJson' | 'close'> as Client;
    const found = await apiCatalog('http://r.example/', client).list({ signal });
    expect(found.map(({ name }) => name)).toEqual(['io.example/1', 'io.example/2', 'io.example/3']);
    expect(asked).toEqual([
      'http://r.example/v0.1/servers?version=latest&limit=100',
      'http://r.example/v0.1/servers?version=latest&limit=100&cursor=io.a%2F1%3A1',
      'http://r.example/v0.1/servers?version=latest&limit=100&cursor=io.a%2F2%3A1',
    ]);
  });
  test.each([
    [
      'io.example/everything',
      ['/io.example%2Feverything/versions/latest', '?version=latest&limit=100&search=everything'],
    ],
    ['everything', ['/everything/versions/latest', '?version=latest&limit=100&search=everything']],
  ])('is asked for %s by name, and then for what it is called in the end', async (name, asked) => {
    const other = registry(404, [ENTRY]);
    expect(await other.find(name)).toMatchObject({ name: ENTRY.name });
    expect(other.asked).toEqual(asked.map((rest) => `http://r.example/v0.1/servers${rest}`));
  });
  test('that finds something like a name has nothing of that name', async () => {
    const like = [
      'io.example/everything-else',
      'io.example/not-everything',
      'everything.example/x',
      'io.example/Everything',
    ];
    const found = like.map((name) => ({ ...ENTRY, name }));
    expect(await registry(404, found).find('everything')).toBeUndefined();
    expect(await registry(404, [...found, ENTRY]).find('everything')).toMatchObject({ name: ENTRY.name });
    const twins = registry(404, [ENTRY, { ...ENTRY, name: 'org.example/everything' }]);
    await expect(twins.find('everything')).rejects.toMatchObject({ code: 'catalog/ambiguous-name' });
  });
  test('that always has another page, and nothing on it, is not asked for ever', async () => {
    let pages = 0;
    const getJson = async () => {
      pages += 1;
      return { servers: [], metadata: pages < 5000 ? { nextCursor: `${pages}` } : {} };
    };
    const client = { getJson, close: async () => undefined } as Pick<Client, 'getJson' | 'close'> as Client;
    expect(await apiCatalog('http://r.example', client).list({ signal })).toEqual([]);
    expect(pages).toBe(1000);
  });
  test('that has more servers than can be looked at is read as far as 10,000', async () => {
    let pages = 0;
    const getJson = async () => {
      pages += 1;
      const servers = Array.from({ length: 100 }, (_, at) => ({
        server: { ...ENTRY, name: `io.example/${pages}-${at}` },
      }));
      return { servers, metadata: { nextCursor: `${pages}` } };
    };
    const client = { getJson, close: async () => undefined } as Pick<Client, 'getJson' | 'close'> as Client;
    expect(await apiCatalog('http://r.example', client).list({ signal })).toHaveLength(10_000);
    expect(pages).toBe(100);
  });
  test.each([400, 422])('that answers %d to a search is looked through as a whole', async (status) => {
    const other = registry(404, status);
    await expect(other.search('ab')).rejects.toMatchObject({ detail: { status } });
    expect(other.asked.map((url) => new URL(url).searchParams.get('search'))).toEqual(['ab', null]);
  });
});
