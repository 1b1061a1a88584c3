import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { readCatalogue } from '@skep/core/catalog/registry-file.ts';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RegistryFolder, type Running } from './registry/process.ts';
import { component, repoRoot, sharedData, title } from './require.ts';

let folder: RegistryFolder;
beforeEach(async () => {
  folder = await RegistryFolder.create();
});
afterEach(() => folder.remove());

interface Item {
  readonly server: { readonly name: string; readonly version: string };
  readonly _meta: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

interface Page {
  readonly servers: readonly Item[];
  readonly metadata: { readonly count: number; readonly nextCursor?: string };
}

const OFFICIAL = 'io.modelcontextprotocol.registry/official';

const serverOf = (name: string, version = '1.0.0') => ({ name, version, description: `Serves ${name}` });
const catalogueOf = (...servers: readonly object[]): string =>
  JSON.stringify({ version: '1.0.0', meta: { last_updated: '2026-01-01T00:00:00Z' }, data: { servers } });

async function page(running: Running, query = ''): Promise<Page> {
  const response = await fetch(`${running.open}/registry/all/v0.1/servers${query}`);
  expect(response.status).toBe(200);
  return (await response.json()) as Page;
}

async function everything(running: Running): Promise<Item[]> {
  const items: Item[] = [];
  let cursor: string | undefined;
  do {
    const { servers, metadata } = await page(
      running,
      `?limit=97${cursor === undefined ? '' : `&cursor=${cursor}`}`,
    );
    items.push(...servers);
    cursor = metadata.nextCursor;
  } while (cursor !== undefined);
  return items;
}

const names = (list: Page): string[] => list.servers.map(({ server }) => `${server.name}@${server.version}`);

/** It has taken the signal, and waits for requests that are not finished. */
async function untilStopping(running: Running): Promise<void> {
  await eventually(async () => (await fetch(`${running.internal}/readiness`)).status === 503);
}

async function eventually(check: () => Promise<boolean>): Promise<void> {
  const end = Date.now() + 10_000;
  while (!(await check())) {
    if (Date.now() > end) throw new Error('it did not happen within 10 s');
    await delay(50);
  }
}

describe('skep-registry serve', () => {
  test('serves a catalogue, follows its file, and ends in order with status 0', async () => {
    const file = await folder.write('c.json', catalogueOf(serverOf('io.acme/one')));
    const running = await folder.serve(await folder.config({ files: file }, '1s'));
    expect(names(await page(running))).toEqual(['io.acme/one@1.0.0']);
    await writeFile(file, catalogueOf(serverOf('io.acme/one', '1.1.0'), serverOf('io.acme/two')));
    await eventually(async () => names(await page(running)).length === 2);
    expect(names(await page(running, '?version=latest'))).toEqual(['io.acme/one@1.1.0', 'io.acme/two@1.0.0']);
    expect((await running.stop()).code).toBe(0);
    await expect(fetch(`${running.open}/registry/all/v0.1/servers`)).rejects.toThrow();
  });

  test('keeps serving what it had while a file is broken, says so in the log, and recovers', async () => {
    const file = await folder.write('c.json', catalogueOf(serverOf('io.acme/one')));
    const running = await folder.serve(await folder.config({ files: file }, '1s'));
    await writeFile(file, '{"half":');
    await eventually(async () => running.stderr().includes('synchronisation failed'));
    expect(names(await page(running))).toEqual(['io.acme/one@1.0.0']);
    await writeFile(file, catalogueOf(serverOf('io.acme/two')));
    await eventually(async () => names(await page(running)).includes('io.acme/two@1.0.0'));
    await running.stop();
  });

  test('starts from the store when a file is broken or gone at a later start', async () => {
    const file = await folder.write('c.json', catalogueOf(serverOf('io.acme/one')));
    const config = await folder.config({ files: file });
    const first = await folder.serve(config);
    const before = await (await fetch(`${first.open}/registry/all/v0.1/servers`)).text();
    await first.stop();
    await writeFile(file, 'not json');
    const second = await folder.serve(config);
    expect(await (await fetch(`${second.open}/registry/all/v0.1/servers`)).text()).toBe(before);
    await second.stop();
  });

  test('shares its store with a second process, which goes on when the first is killed', async () => {
    const config = await folder.config({ files: await folder.write('c.json', catalogueOf(serverOf('a/a'))) });
    const first = await folder.serve(config);
    const second = await folder.serve(config);
    first.child.kill('SIGKILL');
    await once(first.child, 'exit');
    expect(names(await page(second))).toEqual(['a/a@1.0.0']);
    const third = await folder.serve(config);
    expect(names(await page(third))).toEqual(['a/a@1.0.0']);
    await third.stop();
    await second.stop();
  });

  test('holds the old or the new catalogue, never a mix, when it is killed while replacing one by another', async () => {
    const generation = (version: string): string =>
      catalogueOf(...Array.from({ length: 3000 }, (_, index) => serverOf(`io.acme/s${index}`, version)));
    const file = await folder.write('c.json', generation('1.0.0'));
    const config = await folder.config({ files: file }, '1s');
    await (await folder.serve(config)).stop();
    for (const wait of [900, 1050, 1150]) {
      const running = await folder.serve(config);
      await writeFile(file, generation(`2.0.${wait}`));
      await delay(wait);
      running.child.kill('SIGKILL');
      await once(running.child, 'exit');
      // Unreadable now, so that what is served next is what the store holds.
      await writeFile(file, 'broken');
      const after = await folder.serve(config);
      const items = await everything(after);
      expect(new Set(items.map(({ server }) => server.version)).size).toBe(1);
      expect(items).toHaveLength(3000);
      await after.stop();
      await writeFile(file, generation('1.0.0'));
      await (await folder.serve(config)).stop();
    }
  });

  test('serves a 10 MB catalogue, and answers every request while it replaces it by another', async () => {
    const big = (version: string): string =>
      catalogueOf(
        ...Array.from({ length: 5000 }, (_, index) => ({
          ...serverOf(`io.acme/s${index}`, version),
          title: 'x'.repeat(2000),
        })),
      );
    const file = await folder.write('c.json', big('1.0.0'));
    const running = await folder.serve(await folder.config({ files: file }, '1s'));
    await writeFile(file, big('2.0.0'));
    await eventually(async () => {
      const { servers } = await page(running, '?limit=100');
      const versions = new Set(servers.map(({ server }) => server.version));
      expect([servers.length, versions.size]).toEqual([100, 1]);
      return versions.has('2.0.0');
    });
    await running.stop();
  });

  test('lets a running request finish when it is asked to stop', async () => {
    const config = await folder.config({ files: await folder.write('c.json', catalogueOf(serverOf('a/a'))) });
    const running = await folder.serve(config);
    const socket = net.connect(Number(new URL(running.open).port), '127.0.0.1');
    await once(socket, 'connect');
    const { promise: started, resolve } = Promise.withResolvers<void>();
    socket.write('GET /registry/all/v0.1/servers HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n', () =>
      resolve(),
    );
    await started;
    const answer = once(socket, 'data');
    const end = running.stop();
    await untilStopping(running);
    socket.write('\r\n');
    expect(String((await answer)[0])).toMatch(/^HTTP\/1\.1 (200|503) /);
    socket.destroy();
    expect((await end).code).toBe(0);
  });

  test('ends at once on the second signal', async () => {
    const config = await folder.config({ files: await folder.write('c.json', catalogueOf(serverOf('a/a'))) });
    const running = await folder.serve(config);
    const socket = net.connect(Number(new URL(running.open).port), '127.0.0.1');
    await once(socket, 'connect');
    socket.on('error', () => {});
    socket.write('GET / HTTP/1.1\r\nHost:');
    // An answer on a connection made later: the unfinished request has arrived.
    await page(running);
    running.child.kill('SIGINT');
    await untilStopping(running);
    running.child.kill('SIGINT');
    const [code] = await once(running.child, 'exit');
    expect(code).toBe(1);
    socket.destroy();
  });

  test('answers broken, oversized and dot-segment requests with JSON', async () => {
    const config = await folder.config({ files: await folder.write('c.json', catalogueOf(serverOf('a/a'))) });
    const running = await folder.serve(config);
    const raw = async (request: string): Promise<string> => {
      const socket = net.connect(Number(new URL(running.open).port), '127.0.0.1');
      socket.end(request);
      let text = '';
      for await (const chunk of socket) text += String(chunk);
      return text;
    };
    const get = (target: string, headers = ''): Promise<string> =>
      raw(`GET ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${headers}\r\n`);
    expect(await raw('nonsense\r\n\r\n')).toMatch(
      /^HTTP\/1\.1 400 .*\{"error":"the request is not HTTP\/1\.1"\}$/s,
    );
    expect(await get('/', `X-Long: ${'a'.repeat(20_000)}\r\n`)).toMatch(/^HTTP\/1\.1 431 .*\{"error":/s);
    expect(await get('/registry/all/v0.1/../v0.1/servers')).toMatch(/^HTTP\/1\.1 400 .*dot segments"\}$/s);
    expect(await get('/registry/all/v0.1/%2e%2E/servers')).toMatch(/^HTTP\/1\.1 400 .*dot segments"\}$/s);
    expect(await get('/registry/all/v0.1/servers')).toMatch(/^HTTP\/1\.1 200 /);
    await running.stop();
  });
});

describe('bad input to skep-registry', () => {
  const serve = (config: string) =>
    folder.run('serve', '--config', config, '--address', '127.0.0.1:0', '--internal-address', '127.0.0.1:0');

  test.each([
    ['is not JSON', '{"data": nonsense}', /not valid JSON: line 1, column 10/],
    ['has the wrong shape', '{"hello": "world"}', /is no catalogue: found an object with "hello"/],
    ['is 10 MB of something else', 'x'.repeat(10 * 1024 * 1024), /not valid JSON/],
    ['is empty of entries', catalogueOf(), /holds no entries/],
    [
      'holds mostly invalid entries',
      catalogueOf({ name: 'a/a' }, { name: 'b/b' }, serverOf('c/c')),
      /2 of 3 entries/,
    ],
  ])('a catalogue that %s ends the start with one line and leaves nothing', async (_, content, message) => {
    const file = await folder.write('c.json', content);
    const { code, stderr } = await serve(await folder.config({ files: file }));
    const errors = stderr.split('\n').filter((line) => line.startsWith('Error: '));
    expect(code).toBe(1);
    expect(errors).toHaveLength(1);
    expect(errors[0]).toMatch(message);
    expect(errors[0]).toContain('source "files"');
    expect(readdirSync(folder.path).toSorted()).toEqual(['c.json', 'registry.yaml']);
    const checked = await folder.run('validate', '--file', file);
    expect([checked.code, checked.stdout]).toEqual([1, '']);
    expect(checked.stderr).toMatch(message);
  });

  test('a catalogue with a duplicate entry serves the last one and names it', async () => {
    const file = await folder.write(
      'c.json',
      catalogueOf(serverOf('a/a'), { ...serverOf('a/a'), title: 'Last' }),
    );
    const running = await folder.serve(await folder.config({ files: file }));
    expect((await page(running)).servers).toMatchObject([{ server: { title: 'Last' } }]);
    expect(running.stderr()).toContain('server \\"a/a\\" version \\"1.0.0\\" occurs more than once');
    await running.stop();
    const checked = await folder.run('validate', '--file', file);
    expect(checked.code).toBe(1);
    expect(checked.stdout).toContain('server "a/a" version "1.0.0" occurs more than once');
    expect(checked.stderr).toMatch(
      /^Error: an entry occurs more than once in the catalogue ".*c\.json"; .*\n$/,
    );
  });

  test('an unknown key is one line with file, line, column and a suggestion', async () => {
    const config = await folder.write(
      'registry.yaml',
      'sources:\n  - name: a\n    file: { path: c.json }\n    syncPolicy: { interval: 1m }\n    clams: {}\nregistries: [{ name: r, sources: [a] }]\nauth: { mode: anonymous }\n',
    );
    const { code, stderr } = await serve('registry.yaml');
    expect([code, stderr.split('\n')[0]]).toEqual([
      1,
      'Error: registry.yaml:5:5: sources[0].clams: unknown key "clams"; did you mean "claims"?',
    ]);
    const json = await folder.run('validate', '--config', config, '--format', 'json');
    expect([json.code, JSON.parse(json.stdout).valid]).toEqual([1, false]);
  });

  test('several problems are a line each', async () => {
    await folder.write('registry.yaml', 'sources: [{ name: A }]\nregistries: []\n');
    const { code, stderr } = await serve('registry.yaml');
    expect(code).toBe(1);
    expect(stderr).toContain('Error: 4 problems in the configuration "registry.yaml"');
  });

  test('a busy port is named with its flag, and nothing is left', async () => {
    const holder = net.createServer().listen(0, '127.0.0.1');
    await once(holder, 'listening');
    const { port } = holder.address() as net.AddressInfo;
    const config = await folder.config({ files: await folder.write('c.json', catalogueOf(serverOf('a/a'))) });
    const busy = `127.0.0.1:${port}`;
    for (const [flag, other] of [
      ['--address', '--internal-address'],
      ['--internal-address', '--address'],
    ] as const) {
      const { code, stderr } = await folder.run(
        'serve',
        '--config',
        config,
        flag,
        busy,
        other,
        '127.0.0.1:0',
      );
      const lines = stderr.split('\n').filter((line) => !line.startsWith('{'));
      expect(code).toBe(1);
      expect(lines[0]).toMatch(`Error: cannot listen on "${busy}": it is in use; `);
      expect(lines[0]).toContain(flag);
      expect(existsSync(path.join(folder.path, 'registry.db'))).toBe(false);
    }
    holder.close();
  });

  test.each([
    [['serv'], /unknown command "serv"/, /did you mean "serve"/],
    [['serve', '--confg', 'x'], /unknown flag "--confg"/, /did you mean "--config"/],
    [['serve'], /"--config" is missing/, /--help/],
    [['serve', '--config', 'none.yaml'], /"none\.yaml" does not exist|none\.yaml" does not exist/, /path/],
    [['serve', '--config', 'x', '--auth-mode', 'open'], /open/, /anonymous|oauth/],
    [['serve', '--config', 'x', '--address', ':80', '--internal-address', ':80'], /are the same/, /./],
    [['validate'], /nothing to check/, /--help/],
  ])('%j is refused with a hint', async (args, message, hint) => {
    const { code, stdout, stderr } = await folder.run(...args);
    const [line = '', ...more] = stderr.trimEnd().split('\n');
    expect([code, stdout, more]).toEqual([1, '', []]);
    expect(line).toMatch(/^Error: /);
    expect(line).toMatch(message);
    expect(line).toMatch(hint);
  });
});

describe('skep-registry version and help', () => {
  test('prints JSON with the keys that clients look for', async () => {
    const { code, stdout } = await folder.run('version', '--format', 'json');
    expect(code).toBe(0);
    expect(Object.keys(JSON.parse(stdout))).toEqual([
      'version',
      'commit',
      'build_date',
      'runtime_version',
      'go_version',
      'platform',
    ]);
  });

  test.runIf(existsSync(path.join(repoRoot, '.git')))('names the commit that was packed', async () => {
    const { stdout } = await folder.run('version', '--format', 'json');
    const { commit, build_date: date }: Record<string, string> = JSON.parse(stdout);
    expect(commit).toMatch(/^[0-9a-f]{40}$/u);
    expect(new Date(date ?? '').getTime()).toBeGreaterThan(0);
  });

  test.each(['serve', 'validate', 'version'])('explains %s', async (command) => {
    const { code, stdout } = await folder.run(command, '--help');
    expect(code).toBe(0);
    expect(stdout).toContain(`Usage: skep-registry ${command}`);
  });
});

const data = await component('shared-data');
describe.skipIf(!data.available)(title('real catalogues', data), () => {
  const files = [
    'catalog-official/snapshot-2025-12-18.json',
    'catalog-official/seed-2025-09-29.json',
    'catalog-official/agentregistry-seed-2025-11.json',
    'catalog-toolhive/upstream-2026-02-20.json',
    'catalog-toolhive/upstream-example.json',
    'catalog-toolhive/native-2025-12-15.json',
    'catalog-toolhive/native-2026-01-25.json',
    'catalog-toolhive/native-2026-02-20.json',
    'catalog-toolhive/native-with-remote-example.json',
  ];

  test.each(files)('%s is served whole, byte for byte, and each version is found by name', async (file) => {
    const source = path.join(sharedData, file);
    const { entries } = readCatalogue(readFileSync(source), { label: file });
    const servers = entries.filter((entry) => entry.kind === 'server');
    const running = await folder.serve(await folder.config({ files: source }));
    const items = await everything(running);
    expect(items).toHaveLength(servers.length);
    const served = new Map(items.map((item) => [`${item.server.name}@${item.server.version}`, item]));
    for (const { name, version, json, official } of servers) {
      const item = served.get(`${name}@${version}`);
      expect(item?.server).toEqual(JSON.parse(json));
      const { isLatest: _, ...given } = official ?? {};
      expect(item?._meta[OFFICIAL]).toMatchObject(given);
    }
    for (const { name, version, json } of servers.filter((_, index) => index % 37 === 0)) {
      const url = `${running.open}/all/v0.1/servers/${encodeURIComponent(name)}/versions/${encodeURIComponent(version)}`;
      const text = await (await fetch(url)).text();
      expect(text.startsWith(`{"server":${json},"_meta":`)).toBe(true);
    }
    await running.stop();
  });

  test('refuses the catalogue of the time before server.json', async () => {
    const file = path.join(sharedData, 'catalog-official/seed-2025-05-16-old-format.json');
    const { code, stderr } = await folder.run('validate', '--file', file);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^Error: .*seed-2025-05-16-old-format\.json/);
  });
});
