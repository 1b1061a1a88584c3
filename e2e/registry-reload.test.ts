import { readFile, rename } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AUDIENCE, startIdentityProvider } from './fixtures/identity-provider.ts';
import { linesOf, type Line } from './registry/json-lines.ts';
import { RegistryFolder, type Running } from './registry/process.ts';

// SIGHUP: what the running program takes over from its configuration, and what it says about the rest.

let folder: RegistryFolder;
beforeEach(async () => {
  folder = await RegistryFolder.create();
  await folder.write(
    'catalog.json',
    JSON.stringify([{ name: 'io.acme/a', description: 'A', version: '1.0.0' }]),
  );
});
afterEach(() => folder.remove());

/** Puts the configuration in its place in one step, so that a reload never reads half of it. */
async function configure(changes: object = {}): Promise<string> {
  const place = path.join(folder.path, 'registry.yaml');
  const written = await folder.write(
    'next.yaml',
    JSON.stringify({
      sources: [
        { name: 'files', file: { path: 'catalog.json' }, syncPolicy: { interval: '1h' } },
        { name: 'own', managed: {} },
      ],
      registries: [{ name: 'all', sources: ['files', 'own'] }],
      auth: { mode: 'anonymous' },
      storage: { path: 'registry.db' },
      ...changes,
    }),
  );
  await rename(written, place);
  return place;
}

const DONE = /configuration reloaded|the new configuration/;
const reloads = (running: Running): number =>
  linesOf(running.stderr()).filter(({ msg = '' }) => DONE.test(msg)).length;

/** Asks for a reload and waits until the program has said how it ended. */
async function reload(running: Running): Promise<Line[]> {
  const [before, seen] = [reloads(running), running.stderr().length];
  running.child.kill('SIGHUP');
  while (reloads(running) === before) await delay(10);
  return linesOf(running.stderr().slice(seen));
}

const status = async (url: string, init?: RequestInit): Promise<number> => {
  const response = await fetch(url, init);
  await response.text();
  return response.status;
};

describe('a reload', () => {
  test('switches the audit log on, to another file, and off', async () => {
    const registry = await folder.serve(await configure());
    const list = `${registry.open}/all/v0.1/servers`;
    const audited = async (name: string): Promise<number> =>
      linesOf(await readFile(path.join(folder.path, name), 'utf8')).filter(
        ({ type }) => type === 'server.list',
      ).length;
    await status(list);
    for (const logFile of ['one.log', 'two.log']) {
      await configure({ audit: { enabled: true, logFile } });
      await reload(registry);
      await status(list);
    }
    await configure();
    await reload(registry);
    await status(list);
    await registry.stop();
    expect([await audited('one.log'), await audited('two.log')]).toEqual([1, 1]);
  });

  test('that makes a registry leaves a line in the audit log which names it', async () => {
    const audit = { enabled: true, logFile: 'audit.log' };
    const registry = await folder.serve(await configure({ audit }));
    const both = ['all', 'team'].map((name) => ({ name, sources: ['files', 'own'] }));
    await configure({ audit, registries: both });
    await reload(registry);
    expect(await status(`${registry.open}/team/v0.1/servers`)).toBe(200);
    await registry.stop();
    const lines = linesOf(await readFile(path.join(folder.path, 'audit.log'), 'utf8'));
    expect(lines.filter(({ type }) => type === 'config.reload')).toMatchObject([
      {
        outcome: 'success',
        metadata: { extra: { registries: { created: ['team'], updated: [], deleted: [] } } },
      },
    ]);
  });

  test('takes over what sources made through the API may read', async () => {
    const registry = await folder.serve(await configure());
    const put = (name: string): Promise<number> =>
      status(`${registry.open}/v1/sources/${name}`, {
        method: 'PUT',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          file: { path: path.join(folder.path, 'catalog.json') },
          syncPolicy: { interval: '1h' },
        }),
      });
    expect(await put('early')).toBe(400);
    await configure({ limits: { allowedPaths: [folder.path] } });
    await reload(registry);
    expect(await put('late')).toBe(201);
    await configure();
    await reload(registry);
    const sync = `${registry.open}/v1/sources/late/sync`;
    expect(await status(sync, { method: 'POST' })).toBe(202);
    // The source was open before; what is allowed now counts.
    const message = async (): Promise<unknown> => ((await (await fetch(sync)).json()) as Line)['message'];
    while (!/in none of the folders/.test(String(await message()))) await delay(20);
    await registry.stop();
  });

  test('takes over how large claims and catalogues may be', async () => {
    const registry = await folder.serve(await configure());
    const put = async (name: string, body: object): Promise<string> => {
      const response = await fetch(`${registry.open}/v1/${name}`, {
        method: 'PUT',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      return `${response.status} ${await response.text()}`;
    };
    const team = { sources: ['files'], claims: { org: 'acme', team: 'a' } };
    const data = JSON.stringify([{ name: 'io.acme/b', description: 'B'.repeat(2000), version: '1.0.0' }]);
    expect(await put('registries/one', team)).toMatch(/^201 /);
    expect(await put('sources/one', { file: { data } })).toMatch(/^201 /);
    await configure({ limits: { claims: { maxKeys: 1 }, maxCatalogueSize: 1024 } });
    await reload(registry);
    expect(await put('registries/two', team)).toMatch(/^400 .*claims have 2 keys, at most 1 are allowed/);
    expect(await put('sources/two', { file: { data } })).toMatch(/^400 .*at most 1024 are read/);
    // What is stored stays.
    expect(await status(`${registry.open}/one/v0.1/servers`)).toBe(200);
    await folder.write('catalog.json', data);
    const sync = `${registry.open}/v1/sources/files/sync`;
    const message = async (): Promise<unknown> => ((await (await fetch(sync)).json()) as Line)['message'];
    await status(sync, { method: 'POST' });
    while (!/catalog\.json.*1024/.test(String(await message()))) await delay(20);
    await registry.stop();
  });

  test('takes over how often a caller may ask', async () => {
    const registry = await folder.serve(await configure());
    const list = `${registry.open}/all/v0.1/servers`;
    const ask = async (times: number): Promise<number[]> => {
      const statuses: number[] = [];
      for (let at = 0; at < times; at += 1) statuses.push(await status(list));
      return statuses;
    };
    expect(await ask(3)).toEqual([200, 200, 200]);
    await configure({ limits: { requestRate: { perSecond: 0.001, burst: 2 } } });
    await reload(registry);
    expect(await ask(3)).toEqual([200, 200, 429]);
    await configure();
    await reload(registry);
    expect(await ask(3)).toEqual([200, 200, 200]);
    await registry.stop();
  });

  test('names every setting that needs a restart, and warns as a start does', async () => {
    const registry = await folder.serve(await configure());
    await configure({
      cors: { allowedOrigins: ['https://app.example'] },
      limits: { pageSize: { max: 5 } },
      telemetry: { enabled: true, metrics: { enabled: true } },
      storage: { path: 'other.db' },
    });
    await reload(registry);
    const kept = (): unknown[] =>
      linesOf(registry.stderr()).flatMap(({ setting }) => (setting === undefined ? [] : [setting]));
    while (kept().length < 4) await delay(10);
    const { stderr } = await registry.stop();
    expect(kept().map(String).toSorted()).toEqual(['cors', 'limits.pageSize', 'storage', 'telemetry']);
    expect(stderr).toContain('restart to use the new one');
    expect(stderr.match(/Anonymous mode: authentication/g)).toHaveLength(2);
  });

  test.each([
    ['that is not valid', { auth: { mode: 'anonymus' } }, 'auth.mode'],
    ['whose audit log cannot be opened', { audit: { enabled: true, logFile: 'none/a.log' } }, 'none/a.log'],
  ])('keeps the old configuration in place of one %s', async (_what, changes, told) => {
    const registry = await folder.serve(await configure({ audit: { enabled: true, logFile: 'a.log' } }));
    await configure({ registries: [{ name: 'renamed', sources: ['files'] }], ...changes });
    const said = JSON.stringify(await reload(registry));
    expect(said).toContain('the old one stays in use');
    expect(said).toContain(told);
    expect(await status(`${registry.open}/all/v0.1/servers`)).toBe(200);
    expect(await status(`${registry.open}/renamed/v0.1/servers`)).toBe(404);
    await registry.stop();
    expect(await readFile(path.join(folder.path, 'a.log'), 'utf8')).toContain('server.list');
  });

  test('that changes nothing about sign-in needs no identity provider', async () => {
    const idp = await startIdentityProvider();
    try {
      const provider = { name: 'idp', issuerUrl: idp.issuer, audience: AUDIENCE, allowPrivateIP: true };
      const auth = { oauth: { providers: [provider] } };
      const registry = await folder.serve(await configure({ auth }));
      const list = `${registry.open}/all/v0.1/servers`;
      const [known, later] = [await idp.token({ sub: 'ann' }), await idp.token({ sub: 'bob' })];
      const as = (token: string): RequestInit => ({ headers: { authorization: `Bearer ${token}` } });
      expect(await status(list, as(known))).toBe(200);
      await idp.stop();
      await reload(registry);
      expect([await status(list, as(known)), await status(list, as(later))]).toEqual([200, 200]);
      // Another audience is another question, and nobody is there to tell the keys.
      await configure({ auth: { oauth: { providers: [{ ...provider, audience: 'others' }] } } });
      await reload(registry);
      expect(await status(list, as(known))).toBe(503);
      await registry.stop();
    } finally {
      await idp.stop();
    }
  });

  test('shows no byte of a hidden entry to callers who go on asking, whatever the file says', async () => {
    const idp = await startIdentityProvider();
    try {
      const hidden = [{ name: 'io.umbrella/secret', description: 'S', version: '1.0.0' }];
      await folder.write('hidden.json', JSON.stringify(hidden));
      const provider = { name: 'idp', issuerUrl: idp.issuer, audience: AUDIENCE, allowPrivateIP: true };
      const oauth = { providers: [provider] };
      const source = (name: string, file: string, claims: object) => ({
        name,
        file: { path: file },
        syncPolicy: { interval: '1h' },
        claims,
      });
      const acme = source('files', 'catalog.json', { org: 'acme' });
      const umbrella = source('hidden', 'hidden.json', { org: 'umbrella' });
      const all = { name: 'all', sources: ['hidden', 'files'] };
      const gated = { ...all, claims: { org: 'acme' } };
      const roles = (role: string) => ({ oauth, authz: { roles: { superAdmin: [{ role }] } } });
      const files: readonly object[] = [
        { auth: roles('root'), sources: [acme, umbrella], registries: [all] },
        { auth: roles('admin'), sources: [acme, umbrella], registries: [gated] },
        { auth: roles('root'), sources: [umbrella, acme], registries: [all], limits: { maxBodySize: 2048 } },
        { auth: roles('root'), sources: [acme], registries: [all] },
        {
          auth: roles('root'),
          sources: [acme, umbrella],
          registries: [{ ...all, sources: ['files', 'hidden'] }],
        },
      ];
      const registry = await folder.serve(await configure(files[0]));
      const own = { authorization: `Bearer ${await idp.token({ sub: 'ann', org: 'acme' })}` };
      const other = { authorization: `Bearer ${await idp.token({ sub: 'bob', org: 'umbrella' })}` };
      const list = `${registry.open}/all/v0.1/servers`;
      expect(await (await fetch(list, { headers: other })).text()).toContain('io.umbrella/secret');
      const enough = new AbortController();
      const statuses = new Set<number>();
      const shown: string[] = [];
      const callers = Array.from({ length: 4 }, async () => {
        while (!enough.signal.aborted) {
          const response = await fetch(list, { headers: own });
          statuses.add(response.status);
          const text = await response.text();
          if (text.includes('umbrella')) shown.push(text);
        }
      });
      for (let round = 0; round < 10; round += 1) {
        await configure(files[round % files.length]);
        await reload(registry);
      }
      enough.abort();
      await Promise.all(callers);
      await registry.stop();
      expect(shown).toEqual([]);
      expect([...statuses]).toEqual([200]);
    } finally {
      await idp.stop();
    }
  });

  test('loses no request of callers who go on asking', async () => {
    const registry = await folder.serve(await configure());
    const enough = new AbortController();
    const seen = new Set<number>();
    const callers = Array.from({ length: 4 }, async () => {
      while (!enough.signal.aborted) seen.add(await status(`${registry.open}/all/v0.1/servers`));
    });
    for (const claims of [{ org: 'acme' }, {}, { org: 'other' }]) {
      await configure({ registries: [{ name: 'all', sources: ['files'], claims }] });
      await reload(registry);
    }
    enough.abort();
    await Promise.all(callers);
    await registry.stop();
    expect([...seen]).toEqual([200]);
  });

  test('that is asked for again and again ends with the newest file, one after the other', async () => {
    const registry = await folder.serve(await configure());
    const names = Array.from({ length: 12 }, (_, index) => `team-${index}`);
    for (const name of names) {
      await configure({ registries: [{ name, sources: ['files'] }] });
      registry.child.kill('SIGHUP');
    }
    const last = names.at(-1) ?? '';
    while ((await status(`${registry.open}/${last}/v0.1/servers`)) !== 200) await delay(10);
    const { code, stderr } = await registry.stop();
    expect(code).toBe(0);
    expect(stderr).not.toContain('stays in use');
    expect(stderr).not.toMatch(/"level":"error"/);
  });

  test('that is asked for while the program starts or stops neither ends nor disturbs it', async () => {
    const starting = await folder.start(await configure());
    // As early as the program can hear it: its first line is about the configuration.
    while (!starting.stderr().includes('configuration loaded')) await delay(1);
    starting.child.kill('SIGHUP');
    const registry = await starting.ready();
    while (reloads(registry) === 0) await delay(10);
    const stopped = registry.stop();
    registry.child.kill('SIGHUP');
    expect((await stopped).code).toBe(0);
  });
});
