import { readFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RegistryFolder } from './registry/process.ts';

const CATALOGUE = JSON.stringify({
  servers: [{ server: { name: 'io.acme/inline', version: '1.0.0', description: 'd' } }],
});

const OPEN = {
  sources: [{ name: 'internal', managed: {} }],
  registries: [{ name: 'team', sources: ['internal'] }],
  auth: { mode: 'anonymous' },
  storage: { path: 'registry.db' },
};

let folder: RegistryFolder;
beforeEach(async () => void (folder = await RegistryFolder.create()));
afterEach(() => folder.remove());

const config = (content: object = OPEN) => folder.write('registry.yaml', JSON.stringify(content));

async function send(base: string, method: string, path: string, body?: unknown) {
  const response = await fetch(`${base}${path}`, {
    method,
    ...(body === undefined
      ? {}
      : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  });
  const text = await response.text();
  return { status: response.status, text, headers: response.headers };
}

describe('the program', () => {
  test('shows a publish to the next read, keeps it over a restart, and deletes it', async () => {
    const file = await config();
    const first = await folder.serve(file);
    const body = { name: 'my-server', version: '1.0.0', url: 'https://a.test/mcp' };
    const published = await send(first.open, 'POST', '/registry/team/v0.1/publish', body);
    expect(published.status).toBe(201);
    const path = String(published.headers.get('location'));
    expect((await send(first.open, 'GET', path)).status).toBe(200);
    await first.stop();
    const second = await folder.serve(file);
    expect(JSON.parse((await send(second.open, 'GET', path)).text).server).toEqual(
      JSON.parse(published.text),
    );
    expect((await send(second.open, 'DELETE', path)).status).toBe(204);
    expect((await send(second.open, 'GET', path)).status).toBe(404);
    await second.stop();
  });

  test('takes sources and registries through the API, and serves inline data before it answers', async () => {
    const running = await folder.serve(await config());
    const source = await send(running.open, 'PUT', '/v1/sources/inline', { file: { data: CATALOGUE } });
    expect([source.status, JSON.parse(source.text).syncStatus]).toEqual([
      201,
      expect.objectContaining({ phase: 'complete', serverCount: 1 }),
    ]);
    const registry = await send(running.open, 'PUT', '/v1/registries/own', {
      sources: ['inline', 'internal'],
    });
    expect(registry.status).toBe(201);
    const list = await send(running.open, 'GET', '/own/v0.1/servers');
    expect(JSON.parse(list.text).servers).toHaveLength(1);
    expect((await send(running.open, 'DELETE', '/v1/sources/inline')).status).toBe(409);
    expect((await send(running.open, 'DELETE', '/v1/registries/own')).status).toBe(204);
    expect((await send(running.open, 'DELETE', '/v1/sources/inline')).status).toBe(204);
    expect((await send(running.open, 'GET', '/own/v0.1/servers')).status).toBe(404);
    await running.stop();
  });

  test('writes into the audit log which claims a write changed', async () => {
    const logFile = `${folder.path}/audit.log`;
    const running = await folder.serve(await config({ ...OPEN, audit: { enabled: true, logFile } }));
    const put = (claims: object) =>
      send(running.open, 'PUT', '/v1/registries/own', { sources: ['internal'], claims });
    expect((await put({ org: 'acme' })).status).toBe(201);
    expect((await put({})).status).toBe(200);
    await running.stop();
    const events = (await readFile(logFile, 'utf8'))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
      .filter(({ type }) => String(type).startsWith('registry.'));
    expect(events).toMatchObject([
      { type: 'registry.create', metadata: { extra: { claims_after: { org: 'acme' } } } },
      { type: 'registry.update', metadata: { extra: { claims_before: { org: 'acme' }, claims_after: {} } } },
    ]);
  });

  test('follows a file of a source made through the API where the configuration allows its folder', async () => {
    const catalogue = await folder.write('extra.json', CATALOGUE);
    const running = await folder.serve(await config({ ...OPEN, limits: { allowedPaths: [folder.path] } }));
    const body = { file: { path: catalogue }, syncPolicy: { interval: '1h' } };
    expect((await send(running.open, 'PUT', '/v1/sources/extra', body)).status).toBe(201);
    expect((await send(running.open, 'PUT', '/v1/registries/own', { sources: ['extra'] })).status).toBe(201);
    const names = async () => {
      const { text } = await send(running.open, 'GET', '/own/v0.1/servers');
      return JSON.parse(text).servers.map(({ server }: { server: { name: string } }) => server.name);
    };
    await expect.poll(names).toEqual(['io.acme/inline']);
    await folder.write('extra.json', CATALOGUE.replace('inline', 'again'));
    expect((await send(running.open, 'POST', '/v1/sources/extra/sync')).status).toBe(202);
    await expect.poll(names).toEqual(['io.acme/again']);
    const refused = { file: { path: '/etc/hostname' }, syncPolicy: { interval: '1h' } };
    expect((await send(running.open, 'PUT', '/v1/sources/other', refused)).status).toBe(400);
    await running.stop();
  });
});

describe('explain', () => {
  const GOVERNED = {
    ...OPEN,
    registries: [{ name: 'team', sources: ['internal'], claims: { org: 'acme', team: ['a', 'b'] } }],
    auth: {
      mode: 'oauth',
      oauth: { providers: [{ name: 'idp', issuerUrl: 'https://idp.test', audience: 'skep' }] },
      authz: { roles: { manageEntries: [{ role: 'writer' }] } },
    },
  };

  test('names the first failing key and what would change it', async () => {
    const file = await config(GOVERNED);
    const claims = await folder.write('claims.json', '{"sub":"ann","role":"writer","org":"acme","team":"a"}');
    const ask = (...args: readonly string[]) =>
      folder.run('explain', '--config', file, '--registry', 'team', ...args);
    const words = await ask('--claims', claims);
    expect(words.code).toBe(0);
    expect(words.stdout).toContain('mode full, caller "ann", manageEntries\n');
    expect(words.stdout).toMatch(
      /^no {3}registry {2}team +claim "team" of the caller lacks "b"; needed: the value "b"$/m,
    );
    const json = await ask('--claims', '{"org":"acme","team":["b","a"]}', '--format', 'json');
    expect(JSON.parse(json.stdout).findings.at(-1)).toMatchObject({ layer: 'registry', allowed: true });
  });

  test.each([
    [['--registry', 'team'], 'Error: who asks? give --claims or --token; '],
    [['--claims', '{}', '--registry', 'none'], 'Error: registry not found: none; '],
    [['--claims', '{"a":'], 'Error: claims is not valid JSON at line 1, '],
    [['--claims', 'absent.json'], 'Error: '],
  ])('fails with one line for %j', async (args, message) => {
    const { code, stdout, stderr } = await folder.run('explain', '--config', await config(GOVERNED), ...args);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr.startsWith(message)).toBe(true);
    expect(stderr.trimEnd()).not.toContain('\n');
  });
});
