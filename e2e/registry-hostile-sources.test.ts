import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import http from 'node:http';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { gitMissing } from './fixtures/git-server.ts';
import { RegistryFolder, type Running } from './registry/process.ts';

// What places that entries come from may do to the running program, and what happens to sources while they are read.

const MIB = 1024 * 1024;
const noGit = gitMissing();

/** A server on loopback that does as it is told; `asked` counts requests, `open` those that are not answered. */
interface Place {
  readonly url: string;
  answer: (response: http.ServerResponse) => void;
  asked: number;
  open: number;
  close(): Promise<void>;
}

let folder: RegistryFolder;
let place: Place;
beforeEach(async () => {
  folder = await RegistryFolder.create();
  place = await startPlace();
});
afterEach(async () => {
  await folder.remove();
  await place.close();
});

async function startPlace(): Promise<Place> {
  const server = http.createServer((_request, response) => {
    self.asked += 1;
    self.open += 1;
    response.on('close', () => (self.open -= 1));
    self.answer(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const self: Place = {
    url: `http://127.0.0.1:${port}`,
    answer: hang,
    asked: 0,
    open: 0,
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
  return self;
}

const hang = (): void => {};
const send =
  (body: string | Buffer, headers: http.OutgoingHttpHeaders = {}) =>
  (response: http.ServerResponse): void =>
    void response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(body);
const listOf = (...names: string[]): string =>
  JSON.stringify({
    servers: names.map((name) => ({ server: { name, version: '1.0.0', description: name } })),
    metadata: {},
  });

const FILE = { name: 'files', file: { path: 'c.json' }, syncPolicy: { interval: '1h' } };

/** A configuration with a file that is always there, and these sources before it. */
async function configured(...sources: readonly { readonly name: string }[]): Promise<string> {
  await folder.write('c.json', JSON.stringify([{ name: 'io.f/file', version: '1.0.0', description: 'x' }]));
  await mkdir(path.join(folder.path, 'files'), { recursive: true });
  const all = [...sources, FILE];
  return folder.write(
    'registry.yaml',
    JSON.stringify({
      sources: all,
      registries: [{ name: 'all', sources: all.map(({ name }) => name) }],
      auth: { mode: 'anonymous' },
      storage: { path: 'registry.db' },
      limits: { allowPrivateIP: true, allowedPaths: [path.join(folder.path, 'files')] },
    }),
  );
}

const api = (change: object = {}) => ({
  name: 'up',
  api: { endpoint: place.url, ...change },
  syncPolicy: { interval: '1h' },
});

async function names({ open }: Running, registry = 'all'): Promise<string[]> {
  const response = await fetch(`${open}/registry/${registry}/v0.1/servers`);
  expect(response.status).toBe(200);
  const page: { servers: { server: { name: string } }[] } = JSON.parse(await response.text());
  return page.servers.map(({ server }) => server.name);
}

async function statusOf({ open }: Running, source: string): Promise<Record<string, unknown>> {
  const response = await fetch(`${open}/v1/sources/${source}/sync`);
  expect(response.status).toBe(200);
  return JSON.parse(await response.text());
}

async function eventually(check: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await check())) await delay(20);
}

async function put({ open }: Running, at: string, body: object): Promise<number> {
  const response = await fetch(`${open}/v1/${at}`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  await response.text();
  return response.status;
}

/** Largest memory that a process has ever had, in bytes; Linux only. */
function peakMemory({ child }: Running): number {
  const kib = /VmHWM:\s+(\d+)/u.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1];
  return Number(kib) * 1024;
}

describe('what a place sends', () => {
  // Only what never ends is waited for.
  const timeoutFor = (what: string): string => (what === 'a byte now and then' ? '1s' : '1m');
  test.each<[what: string, body: () => (response: http.ServerResponse) => void, message: RegExp]>([
    [
      'a page of ten million empty lists',
      () => send(`{"servers":[${'[],'.repeat(10_000_000)}[]]}`),
      /answered more than 4000000 values on one page$/u,
    ],
    [
      'a page without an end',
      () => (response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        const block = Buffer.alloc(MIB, ' ');
        const more = (): void => void (response.destroyed || response.write(block, more));
        more();
      },
      /larger than 33554432 bytes$/u,
    ],
    [
      'a little that would be a lot once unpacked',
      () => send(gzipSync(Buffer.alloc(200 * MIB, ' ')), { 'content-encoding': 'gzip' }),
      /is not UTF-8|is not valid JSON/u,
    ],
    [
      'a byte now and then',
      () => (response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        const timer = setInterval(() => response.write(' '), 50);
        response.on('close', () => clearInterval(timer));
      },
      /did not answer within 1000 ms$/u,
    ],
    [
      'lists in lists in lists',
      () => send(`{"servers":[${'['.repeat(100_000)}${']'.repeat(100_000)}]}`),
      /nests deeper than 200 levels$/u,
    ],
    [
      'a redirect to itself',
      () => (response) => void response.writeHead(302, { location: '/' }).end(),
      /redirects too often$/u,
    ],
    [
      'a redirect to a file of this machine',
      () => (response) => void response.writeHead(302, { location: 'file:///etc/passwd' }).end(),
      /redirects to "file:\/\/\/etc\/passwd", which is refused$/u,
    ],
  ])('%s fails that source alone, in little memory', async (what, body, message) => {
    place.answer = body();
    const running = await folder.serve(await configured(api({ timeout: timeoutFor(what) })));
    expect(await statusOf(running, 'up')).toMatchObject({
      phase: 'failed',
      message: expect.stringMatching(message),
      serverCount: 0,
    });
    expect(await names(running)).toEqual(['io.f/file']);
    if (process.platform === 'linux') expect(peakMemory(running)).toBeLessThan(450 * MIB);
    expect((await running.stop()).code).toBe(0);
  });

  test('what was served before stays, whatever it sends later', async () => {
    place.answer = send(listOf('io.a/one'));
    const running = await folder.serve(await configured(api()));
    for (const body of [
      '',
      'null',
      '[]',
      '{"servers":7}',
      '{"servers":[{}]}',
      '\u0000',
      '{"servers":[{"server":{"name":"../x","version":"1","description":"x"}}]}',
    ]) {
      place.answer = send(body);
      const { attemptCount } = await statusOf(running, 'up');
      await fetch(`${running.open}/v1/sources/up/sync`, { method: 'POST' });
      await eventually(
        async () => Number((await statusOf(running, 'up'))['attemptCount']) > Number(attemptCount),
      );
      expect(await statusOf(running, 'up')).toMatchObject({ phase: 'failed', serverCount: 1 });
      expect(await names(running)).toEqual(['io.a/one', 'io.f/file']);
    }
    await running.stop();
  });
});

describe('a source that is being read', () => {
  test('does not keep a start from being stopped', async () => {
    const starting = await folder.start(await configured(api({ timeout: '5m' })));
    await eventually(() => place.open === 1);
    starting.child.kill('SIGTERM');
    const [code] = await once(starting.child, 'exit');
    expect(code).toBe(0);
    expect(starting.stderr()).not.toContain('"serving"');
    await eventually(() => place.open === 0);
  });

  test('can be deleted and made anew from another place', async () => {
    const running = await folder.serve(await configured());
    const source = { api: { endpoint: place.url, timeout: '5m' }, syncPolicy: { interval: '1h' } };
    expect(await put(running, 'sources/made', source)).toBe(201);
    expect(await put(running, 'registries/team', { sources: ['made'] })).toBe(201);
    await eventually(() => place.open === 1);
    expect(await put(running, 'registries/team', { sources: ['files'] })).toBe(200);
    expect((await fetch(`${running.open}/v1/sources/made`, { method: 'DELETE' })).status).toBe(204);
    await eventually(() => place.open === 0);
    place.answer = send(listOf('io.a/anew'));
    expect(await put(running, 'sources/made', source)).toBe(201);
    expect(await put(running, 'registries/team', { sources: ['made'] })).toBe(200);
    await eventually(async () => (await names(running, 'team')).includes('io.a/anew'));
    expect((await running.stop()).code).toBe(0);
  });

  test('is read anew at once when it changes', async () => {
    const running = await folder.serve(await configured());
    const source = { api: { endpoint: place.url, timeout: '5m' }, syncPolicy: { interval: '1h' } };
    expect(await put(running, 'sources/made', source)).toBe(201);
    expect(await put(running, 'registries/team', { sources: ['made'] })).toBe(201);
    await eventually(() => place.open === 1);
    place.answer = send(listOf('io.a/kept', 'io.a/gone'));
    const filter = { names: { exclude: ['*/gone'] } };
    expect(await put(running, 'sources/made', { ...source, filter, claims: { org: 'acme' } })).toBe(200);
    await eventually(async () => (await names(running, 'team')).length > 0);
    expect(await names(running, 'team')).toEqual(['io.a/kept']);
    await running.stop();
  });

  test('may become the managed one: what is published there stays', async () => {
    place.answer = send(listOf('io.a/one'));
    const running = await folder.serve(await configured(api({ timeout: '5m' })));
    expect(await names(running)).toEqual(['io.a/one', 'io.f/file']);
    const late: http.ServerResponse[] = [];
    place.answer = (response) => void late.push(response);
    await fetch(`${running.open}/v1/sources/up/sync`, { method: 'POST' });
    await eventually(() => late.length === 1);
    const managed: { name: string; managed: object } = { name: 'up', managed: {} };
    await configured(managed);
    running.child.kill('SIGHUP');
    const publish = () =>
      fetch(`${running.open}/all/v0.1/publish`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ name: 'mine', version: '1.0.0' }),
      });
    await eventually(async () => (await publish()).status === 201);
    for (const response of late) send(listOf('io.a/late'))(response);
    await eventually(() => place.open === 0);
    expect(await names(running)).toEqual(['io.f/file', 'mine']);
    expect((await running.stop()).code).toBe(0);
    const again = await folder.serve(path.join(folder.path, 'registry.yaml'));
    expect(await names(again)).toEqual(['io.f/file', 'mine']);
    await again.stop();
  });

  test.skipIf(noGit !== '')(
    noGit === ''
      ? 'leaves neither a process nor a folder of git behind at the end'
      : `with git [skipped: ${noGit}]`,
    async () => {
      const running = await folder.serve(await configured());
      const source = { git: { repository: `${place.url}/c.git` }, syncPolicy: { interval: '1h' } };
      expect(await put(running, 'sources/made', source)).toBe(201);
      await eventually(() => place.open === 1);
      expect((await running.stop()).code).toBe(0);
      expect(execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })).not.toContain(place.url);
      expect((await readdir(folder.path)).filter((name) => name.startsWith('skep-git-'))).toEqual([]);
    },
  );
});

test('a file that somebody named through the API and that is not there does not keep the program from starting', async () => {
  const config = await configured();
  const running = await folder.serve(config);
  const file = path.join(folder.path, 'files', 'later.json');
  expect(await put(running, 'sources/later', { file: { path: file }, syncPolicy: { interval: '1s' } })).toBe(
    201,
  );
  expect(await put(running, 'registries/team', { sources: ['later'] })).toBe(201);
  await eventually(async () => Number((await statusOf(running, 'later'))['attemptCount']) > 0);
  await running.stop();
  const again = await folder.serve(config);
  expect(await names(again, 'team')).toEqual([]);
  await writeFile(file, JSON.stringify([{ name: 'io.l/later', version: '1.0.0', description: 'x' }]));
  await eventually(async () => (await names(again, 'team')).includes('io.l/later'));
  await again.stop();
});
