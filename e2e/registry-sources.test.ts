import http from 'node:http';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { gitMissing, startGitServer, type GitServer } from './fixtures/git-server.ts';
import { startRegistryApi, type ApiListed, type RegistryApi } from './fixtures/registry-api.ts';
import { RegistryFolder, type Running } from './registry/process.ts';
import { component, sharedData, title } from './require.ts';

const noGit = gitMissing();
const shared = await component('shared-data');

interface Item {
  readonly server: { readonly name: string; readonly version: string };
  readonly _meta: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}
const OFFICIAL = 'io.modelcontextprotocol.registry/official';

const document = (name: string, change: object = {}) => ({
  name,
  version: '1.0.0',
  description: name,
  ...change,
});
const catalogue = (...servers: readonly object[]): string =>
  JSON.stringify({ version: '1.0.0', meta: { last_updated: '2026-01-01T00:00:00Z' }, data: { servers } });
const tagged = (name: string, ...tags: string[]) =>
  document(name, {
    _meta: {
      'io.modelcontextprotocol.registry/publisher-provided': { 'io.github.stacklok': { x: { tags } } },
    },
  });

let folder: RegistryFolder;
const closers: (() => Promise<void>)[] = [];
beforeEach(async () => {
  folder = await RegistryFolder.create();
});
afterEach(async () => {
  await folder.remove();
  for (const close of closers.splice(0)) await close();
});

/** Serves sources, in this order, under the registry `all`. */
async function serve(...sources: readonly object[]): Promise<Running> {
  const named = sources.map((source, index) => ({
    name: `s${index}`,
    syncPolicy: { interval: '1s' },
    ...source,
  }));
  const config = await folder.write(
    'registry.yaml',
    JSON.stringify({
      sources: named,
      registries: [{ name: 'all', sources: named.map(({ name }) => name) }],
      auth: { mode: 'anonymous' },
      storage: { path: 'registry.db' },
    }),
  );
  return folder.serve(config);
}

async function items({ open }: Running, registry = 'all'): Promise<Item[]> {
  const found: Item[] = [];
  for (let cursor: string | undefined = ''; cursor !== undefined;) {
    const query: string = cursor === '' ? '' : `&cursor=${cursor}`;
    const response = await fetch(`${open}/registry/${registry}/v0.1/servers?limit=1000${query}`);
    expect(response.status).toBe(200);
    const page = (await response.json()) as { servers: Item[]; metadata: { nextCursor?: string } };
    found.push(...page.servers);
    cursor = page.metadata.nextCursor;
  }
  return found;
}

const names = async (running: Running): Promise<string[]> =>
  (await items(running)).map(({ server }) => server.name);

interface SourceInfo {
  readonly claims?: object;
  readonly syncStatus: Readonly<Record<string, unknown>>;
}

async function info({ open }: Running, source = 's0'): Promise<SourceInfo> {
  const response = await fetch(`${open}/v1/sources/${source}`);
  expect(response.status).toBe(200);
  return response.json() as Promise<SourceInfo>;
}

async function eventually(check: () => Promise<boolean> | boolean): Promise<void> {
  for (const end = Date.now() + 15_000; !(await check());) {
    if (Date.now() > end) throw new Error('it did not happen within 15 s');
    await delay(50);
  }
}

async function git(): Promise<GitServer> {
  const server = await startGitServer();
  closers.push(() => server.close());
  return server;
}

async function api(listed: readonly ApiListed[]): Promise<RegistryApi> {
  const server = await startRegistryApi(listed);
  closers.push(() => server.close());
  return server;
}

describe.skipIf(noGit !== '')(noGit === '' ? 'a git source' : `a git source [skipped: ${noGit}]`, () => {
  test('follows its branch, keeps what it had while the repository is away, and recovers', async () => {
    const repository = await git();
    await repository.commit('first', { 'data/c.json': catalogue(document('io.a/one')) });
    const running = await serve({ git: { repository: repository.url, path: 'data/c.json' } });
    expect(await names(running)).toEqual(['io.a/one']);
    await repository.commit('second', {
      'data/c.json': catalogue(document('io.a/one'), document('io.a/two')),
    });
    await eventually(async () => (await names(running)).length === 2);
    repository.intercept = (_request, response) => {
      response.writeHead(503).end();
      return true;
    };
    await eventually(async () => (await info(running)).syncStatus['phase'] === 'failed');
    const { syncStatus } = await info(running);
    expect(syncStatus).toMatchObject({ serverCount: 2 });
    expect(Number(syncStatus['attemptCount'])).toBeGreaterThanOrEqual(1);
    expect(await names(running)).toEqual(['io.a/one', 'io.a/two']);
    repository.intercept = undefined;
    await eventually(async () => (await info(running)).syncStatus['phase'] === 'complete');
    expect((await info(running)).syncStatus).toMatchObject({ attemptCount: 0, serverCount: 2 });
  });

  test('signs in with the password file, which it reads for every fetch', async () => {
    const repository = await git();
    await repository.commit('first', { 'registry.json': catalogue(document('io.a/one')) });
    repository.credentials = { username: 'bot', password: 'first' };
    const passwordFile = await folder.write('password', 'first\n');
    const running = await serve({
      git: { repository: repository.url, auth: { username: 'bot', passwordFile } },
    });
    expect(await names(running)).toEqual(['io.a/one']);
    repository.credentials = { username: 'bot', password: 'second' };
    await writeFile(passwordFile, 'second');
    await repository.commit('second', { 'registry.json': catalogue(document('io.a/two')) });
    await eventually(async () => (await names(running)).includes('io.a/two'));
    expect(running.stderr()).not.toContain('second\n');
  });
});

describe('an api source', () => {
  test('mirrors another skep-registry, and what comes there later', async () => {
    const file = await folder.write('c.json', catalogue(document('io.a/one'), document('io.a/two')));
    const upstream = await serve({ file: { path: file } });
    const second = await RegistryFolder.create();
    closers.push(() => second.remove());
    const config = await second.write(
      'registry.yaml',
      JSON.stringify({
        sources: [
          { name: 'up', api: { endpoint: `${upstream.open}/registry/all` }, syncPolicy: { interval: '1s' } },
        ],
        registries: [{ name: 'all', sources: ['up'] }],
        auth: { mode: 'anonymous' },
        storage: { path: 'registry.db' },
      }),
    );
    const mirror = await second.serve(config);
    expect(await items(mirror)).toEqual(await items(upstream));
    await writeFile(file, catalogue(document('io.a/one'), document('io.a/two'), document('io.a/three')));
    await eventually(async () => (await names(mirror)).includes('io.a/three'));
  });

  test.skipIf(!shared.available)(
    title('serves a recorded crawl of the official registry whole', shared),
    async () => {
      const crawl: readonly ApiListed[] = JSON.parse(
        readFileSync(path.join(sharedData, 'catalog-official/snapshot-2025-12-18.json'), 'utf8'),
      );
      const listed = crawl.slice(0, 1500);
      const upstream = await api(listed);
      const running = await serve({ api: { endpoint: upstream.origin }, syncPolicy: { interval: '1h' } });
      const shown = listed.filter((item) => item._meta?.[OFFICIAL]?.status !== 'deleted');
      const { syncStatus } = await info(running);
      const skipped = Array.isArray(syncStatus['skipped']) ? syncStatus['skipped'].length : 0;
      const found = await items(running);
      expect(found.length + skipped).toBe(
        new Set(shown.map(({ server }) => `${server.name}@${server.version}`)).size,
      );
      expect(found[0]?._meta[OFFICIAL]).toMatchObject({ status: 'active', publishedAt: expect.any(String) });
    },
  );

  test('takes the status that the other registry gives', async () => {
    const item = (name: string, status: string): ApiListed => ({
      server: document(name),
      _meta: { [OFFICIAL]: { status, updatedAt: '2026-01-01T00:00:00Z' } },
    });
    const upstream = await api([item('io.a/old', 'deprecated'), item('io.a/gone', 'deleted')]);
    const running = await serve({ api: { endpoint: upstream.origin } });
    expect(
      (await items(running)).map(({ server, _meta }) => [server.name, _meta[OFFICIAL]?.['status']]),
    ).toEqual([['io.a/old', 'deprecated']]);
  });

  test('does not keep the registry from starting while it is away, and is served when it comes', async () => {
    const upstream = await api([{ server: document('io.a/one') }]);
    upstream.misbehaviour = { kind: 'status', status: 404, times: 1 };
    const running = await serve({ api: { endpoint: upstream.origin } });
    expect(await names(running)).toEqual([]);
    await eventually(async () => (await names(running)).includes('io.a/one'));
  });
});

describe('file sources', () => {
  test('are read from a URL', async () => {
    let content = catalogue(document('io.a/one'));
    const server = http.createServer((_request, response) => response.end(content)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    closers.push(async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    });
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const running = await serve({ file: { url: `http://127.0.0.1:${port}/c.json` } });
    expect(await names(running)).toEqual(['io.a/one']);
    content = catalogue(document('io.a/two'));
    await eventually(async () => (await names(running)).includes('io.a/two'));
  });

  test('give what their filter lets pass, and another filter at the next start something else', async () => {
    const file = await folder.write(
      'c.json',
      catalogue(
        tagged('io.a/stable', 'stable'),
        tagged('io.a/deprecated-x', 'stable'),
        tagged('io.a/beta', 'beta'),
      ),
    );
    const filter = { names: { exclude: ['*/deprecated-*'] }, tags: { include: ['stable'] } };
    const running = await serve({ file: { path: file }, filter });
    expect(await names(running)).toEqual(['io.a/stable']);
    await running.stop();
    const again = await serve({ file: { path: file }, filter: { tags: { exclude: ['stable'] } } });
    expect(await names(again)).toEqual(['io.a/beta']);
  });

  test('hand their claims to their entries, new claims too, and managed sources do not', async () => {
    const file = await folder.write('c.json', catalogue(document('io.a/one')));
    const entryClaims = async (running: Running, source: string): Promise<unknown> => {
      const response = await fetch(`${running.open}/v1/sources/${source}/entries`);
      const { entries } = (await response.json()) as { entries: { claims?: object }[] };
      return entries.map(({ claims }) => claims);
    };
    const managed = { managed: {}, claims: { org: 'acme' } };
    const running = await serve({ file: { path: file }, claims: { org: 'acme' } }, managed);
    expect(await entryClaims(running, 's0')).toEqual([{ org: 'acme' }]);
    const published = await fetch(`${running.open}/registry/all/v0.1/publish`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'mine', version: '1.0.0', claims: { team: 'b' } }),
    });
    expect(published.status).toBe(201);
    await running.stop();
    const again = await serve({ file: { path: file }, claims: { org: 'other' } }, { ...managed, claims: {} });
    expect(await entryClaims(again, 's0')).toEqual([{ org: 'other' }]);
    expect(await entryClaims(again, 's1')).toEqual([{ team: 'b' }]);
  });
});

describe('a kubernetes source', () => {
  test('without a cluster says so in one line, and the other sources are served', async () => {
    const file = await folder.write('c.json', catalogue(document('io.acme/a')));
    const running = await serve({ kubernetes: { namespaces: ['prod'] } }, { file: { path: file } });
    expect((await items(running)).map(({ server }) => server.name)).toEqual(['io.acme/a']);
    const response = await fetch(`${running.open}/v1/sources/s0`);
    const { syncStatus } = (await response.json()) as { readonly syncStatus: object };
    expect(syncStatus).toMatchObject({
      phase: 'failed',
      message: expect.stringMatching(
        /^mcpservers of namespace prod: this program runs in no cluster, .* \(and 4 more\)$/,
      ),
    });
    await running.stop();
  });
});
