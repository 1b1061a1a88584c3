import { readFileSync } from 'node:fs';
import path from 'node:path';
import { readYaml } from '@skep/registry/shape/yaml-text.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AUDIENCE, type IdentityProvider, startIdentityProvider } from './fixtures/identity-provider.ts';
import { RegistryFolder, type Running } from './registry/process.ts';
import { component, sharedData, title } from './require.ts';

// Every file of the shared claims data, as it is, through the program, a real identity provider and HTTP: configurations,
// personas, catalogues, the containment table, and the users of a realm with the registry that they were made for.

type Claims = Readonly<Record<string, unknown>>;
type Mode = 'anonymous' | 'auth-only' | 'full';

interface Persona {
  readonly persona: string;
  readonly claims: Claims;
}
interface SeedRow {
  readonly resource: Claims;
  readonly caller: Claims;
  readonly allowed: boolean;
}
interface Realm {
  readonly users: readonly { readonly username: string; readonly groups: readonly string[] }[];
}
interface Source {
  readonly name: string;
  readonly claims?: { readonly groups: string } | undefined;
  readonly filter?: { readonly names: { readonly include: readonly string[] } } | undefined;
}
interface Config {
  readonly sources: readonly Source[];
  readonly registries: readonly { readonly name: string; readonly sources: readonly string[] }[];
  readonly auth: Claims;
}

const data = await component('shared-data');
const file = (name: string): string => path.join(sharedData, name);
const text = (name: string): string => readFileSync(file(name), 'utf8');
const json = (name: string) => (data.available ? JSON.parse(text(name)) : []);
const personas: readonly Persona[] = json('claims/personas.json');
const seed: readonly SeedRow[] = json('claims/containment-seed.json');
const CATALOGUES = {
  shared: 'catalog-toolhive/upstream-example.json',
  platform: 'claims/platform-registry.json',
  data: 'claims/data-registry.json',
};
type Catalogue = keyof typeof CATALOGUES;

/** Names of the servers in catalogues, in the order of a list. */
function serversIn(...catalogues: readonly Catalogue[]): string[] {
  return catalogues
    .flatMap((name): { name: string }[] => json(CATALOGUES[name]).data.servers)
    .map(({ name }) => name)
    .sort();
}

let idp: IdentityProvider;
let folder: RegistryFolder;
const running: Running[] = [];
beforeAll(async () => {
  idp = await startIdentityProvider();
  folder = await RegistryFolder.create();
});
afterAll(async () => {
  await Promise.all(running.map((one) => one.stop()));
  await folder.remove();
  await idp.stop();
});

async function serve(config: string): Promise<Running> {
  const started = await folder.serve(await folder.write(`${running.length}.yaml`, config));
  running.push(started);
  return started;
}

/** A configuration of the data with the places of this machine, and with the embedded store for its database. */
function here(name: string): string {
  return text(`claims/${name}`)
    .replaceAll('/examples/upstream-registry.json', file(CATALOGUES.shared))
    .replaceAll('/examples/authz-test/', `${file('claims')}/`)
    .replace(/issuerUrl: .*/u, `issuerUrl: ${idp.issuer}`)
    .replace(/^database:[^]*/mu, 'storage: { path: ":memory:" }\n');
}

const OPEN = 'auth: { mode: anonymous }\nstorage: { path: ":memory:" }\n';
const CONFIGS: Readonly<Record<Mode, () => string>> = {
  anonymous: () => here('config-authz-test.yaml').replace(/^auth:[^]*/mu, OPEN),
  'auth-only': () => here('config-auth-only.yaml'),
  full: () => here('config-authz-test.yaml'),
};

interface Named {
  readonly name?: string;
  readonly server?: { readonly name: string };
}

/** Members of the answers that are looked at. */
interface Answer {
  readonly servers?: readonly Named[];
  readonly sources?: readonly Named[];
  readonly registries?: readonly Named[];
  readonly roles?: readonly string[];
}

interface Asked {
  readonly token?: string | undefined;
  readonly body?: unknown;
}

async function ask(
  server: Running,
  target: string,
  { token, body }: Asked = {},
): Promise<{ status: number; body: Answer }> {
  const response = await fetch(server.open + target, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      'content-type': 'application/json',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: JSON.parse(await response.text()) };
}

/** The member's names, or the status of a refusal. */
async function listed(server: Running, target: string, token?: string): Promise<string[] | number> {
  const { status, body } = await ask(server, target, { token });
  if (status !== 200) return status;
  const rows = body.servers ?? body.sources ?? body.registries ?? [];
  return rows.map(({ name, server: document }) => document?.name ?? name ?? '');
}

const sees = (server: Running, registry: string, token?: string): Promise<string[] | number> =>
  listed(server, `/${registry}/v0.1/servers?limit=1000`, token);

function tokenOf({ aud: _set, ...own }: Claims): Promise<string> {
  return idp.token(own);
}

const publication = (name: string, claims: Claims) => ({ name, version: '1.0.0', description: 'd', claims });
const PLATFORM_CLAIMS = { org: 'acme', team: 'platform' };

interface Sight {
  readonly all: string[] | number;
  readonly platform: string[] | number;
  readonly data: string[] | number;
  readonly registries: readonly string[];
  readonly sources: readonly string[] | number;
  readonly roles: readonly string[];
  /** Status of publishing with the claims of the platform team. */
  readonly publish: number;
}

const managing = ['manageSources', 'manageRegistries'];
const SIGHTS = (): Readonly<Record<string, Sight>> => {
  const platform = {
    all: serversIn('shared', 'platform'),
    platform: serversIn('shared', 'platform'),
    data: 403,
    registries: ['acme-all', 'acme-platform'],
  };
  return {
    'super-admin': {
      all: serversIn('shared', 'platform', 'data'),
      platform: serversIn('shared', 'platform'),
      data: serversIn('shared', 'data'),
      registries: ['acme-all', 'acme-data', 'acme-platform'],
      sources: ['data-tools', 'internal', 'platform-tools', 'shared-catalog'],
      roles: ['superAdmin'],
      publish: 201,
    },
    'platform-admin': {
      ...platform,
      sources: ['internal', 'platform-tools', 'shared-catalog'],
      roles: managing,
      publish: 403,
    },
    'platform-writer': { ...platform, sources: 403, roles: ['manageEntries'], publish: 201 },
    'data-writer': {
      all: serversIn('shared', 'data'),
      platform: 403,
      data: serversIn('shared', 'data'),
      registries: ['acme-all', 'acme-data'],
      sources: 403,
      roles: ['manageEntries'],
      publish: 403,
    },
    outsider: {
      all: 403,
      platform: 403,
      data: 403,
      registries: [],
      sources: ['internal'],
      roles: managing,
      publish: 403,
    },
  };
};

describe.skipIf(!data.available)(title('the configurations and personas of the data', data), () => {
  test('name the personas that are expected here', () => {
    expect(personas.map(({ persona }) => persona)).toEqual(Object.keys(SIGHTS()));
  });

  describe('in full authorization', () => {
    let server: Running;
    beforeAll(async () => {
      server = await serve(CONFIGS.full());
    });

    test.each(personas)(
      '$persona sees and may do what its claims and role say',
      async ({ persona, claims }) => {
        const token = await tokenOf(claims);
        const sight = {
          all: await sees(server, 'acme-all', token),
          platform: await sees(server, 'acme-platform', token),
          data: await sees(server, 'acme-data', token),
          registries: await listed(server, '/v1/registries', token),
          sources: await listed(server, '/v1/sources', token),
          roles: (await ask(server, '/v1/me', { token })).body.roles,
        };
        const body = { server: publication(`com.acme/by-${persona}`, {}), claims: PLATFORM_CLAIMS };
        const { status: publish } = await ask(server, '/v1/entries', { token, body });
        expect({ ...sight, publish }).toEqual(SIGHTS()[persona]);
        await withdraw(server, `com.acme/by-${persona}`);
      },
    );

    test('nobody gets anything without a token', async () => {
      for (const target of ['/acme-all/v0.1/servers', '/v1/registries', '/v1/sources', '/v1/me']) {
        expect((await ask(server, target)).status).toBe(401);
      }
    });
  });

  test('everybody sees and may do everything in auth-only mode, with a token', async () => {
    const server = await serve(CONFIGS['auth-only']());
    const published: string[] = [];
    for (const { persona, claims } of personas) {
      const token = await tokenOf(claims);
      const own = `com.acme/by-${persona}`;
      const body = publication(own, PLATFORM_CLAIMS);
      expect((await ask(server, '/default/v0.1/publish', { token, body })).status).toBe(201);
      published.push(own);
      expect(await sees(server, 'default', token)).toEqual([...serversIn('shared'), ...published].sort());
      expect(await listed(server, '/v1/sources', token)).toEqual(['internal', 'shared-catalog']);
      expect((await ask(server, '/v1/me', { token })).body).toEqual({ subject: claims['sub'], roles: [] });
    }
    expect(await sees(server, 'default')).toBe(401);
    expect((await ask(server, '/default/v0.1/publish', { body: {} })).status).toBe(401);
  });

  test('nobody has to say who they are in anonymous mode', async () => {
    const server = await serve(CONFIGS.anonymous());
    const [persona] = personas;
    const body = { server: publication('com.acme/by-nobody', {}), claims: PLATFORM_CLAIMS };
    for (const token of [undefined, 'nonsense', await tokenOf(persona?.claims ?? {})]) {
      expect(await sees(server, 'acme-platform', token)).toEqual(serversIn('shared', 'platform'));
      expect(await sees(server, 'acme-data', token)).toEqual(serversIn('shared', 'data'));
      expect((await ask(server, '/v1/me', { token })).status).toBe(401);
    }
    expect((await ask(server, '/v1/entries', { body })).status).toBe(201);
    const all = [...serversIn('shared', 'platform', 'data'), 'com.acme/by-nobody'].sort();
    expect(await sees(server, 'acme-all')).toEqual(all);
  });
});

/** As super-admin, so that the next persona finds what the configuration holds. */
async function withdraw(server: Running, name: string): Promise<void> {
  const authorization = `Bearer ${await tokenOf({ role: 'super-admin' })}`;
  const target = `/v1/entries/server/${encodeURIComponent(name)}/versions/1.0.0`;
  await fetch(server.open + target, { method: 'DELETE', headers: { authorization } });
}

describe.skipIf(!data.available)(title('the containment table of the data', data), () => {
  const root = { role: 'super-admin' };
  /** One registry per row, open to those who satisfy the row's resource, and one that is open to all. */
  const config = (auth: unknown): string =>
    JSON.stringify({
      sources: [{ name: 'internal', managed: {} }],
      registries: [
        { name: 'open', sources: ['internal'] },
        ...seed.map(({ resource }, row) => ({
          name: `row-${row}`,
          sources: ['internal'],
          ...(Object.keys(resource).length === 0 ? {} : { claims: resource }),
        })),
      ],
      auth,
      storage: { path: ':memory:' },
    });
  const oauth = () => ({
    providers: [{ name: 'test', issuerUrl: idp.issuer, audience: AUDIENCE, allowPrivateIP: true }],
  });
  const authz = { roles: { superAdmin: [root] } };

  test.each<[mode: Mode, auth: () => unknown]>([
    ['anonymous', () => ({ mode: 'anonymous' })],
    ['auth-only', () => ({ mode: 'oauth', oauth: oauth() })],
    ['full', () => ({ mode: 'oauth', oauth: oauth(), authz })],
  ])('holds for gates and entries in %s mode', async (mode, auth) => {
    const server = await serve(config(auth()));
    const publisher = mode === 'anonymous' ? undefined : await tokenOf(root);
    for (const [row, { resource }] of seed.entries()) {
      const body = { ...publication(`com.acme/row-${row}`, resource) };
      expect((await ask(server, '/open/v0.1/publish', { token: publisher, body })).status).toBe(201);
    }
    for (const [row, { resource, caller, allowed }] of seed.entries()) {
      const token = mode === 'anonymous' ? undefined : await tokenOf(caller);
      const gate = await sees(server, `row-${row}`, token);
      const isSeen = (await sees(server, 'open', token)) as readonly string[];
      const isOpen = mode !== 'full';
      expect([row, Array.isArray(gate) ? 200 : gate]).toEqual([row, isOpen || allowed ? 200 : 403]);
      // No claims open a registry and hide an entry.
      const entry = isOpen || (allowed && Object.keys(resource).length > 0);
      expect([row, isSeen.includes(`com.acme/row-${row}`)]).toEqual([row, entry]);
    }
  });
});

describe.skipIf(!data.available)(title('the realm and the registry of the demonstration', data), () => {
  const realm: Realm = json('claims/demo-keycloak-realm.json');

  /** The configuration inside the values, its remote catalogues replaced by files that hold what the filters take. */
  async function demo(changes: Claims = {}): Promise<Config> {
    const [, block = ''] = text('claims/demo-registry-server-values.yaml').split(/^config:\n/mu);
    const read = readYaml(block.replaceAll(/^ {2}/gmu, ''));
    if ('problems' in read) throw new Error(JSON.stringify(read.problems));
    const { sources, registries, auth } = read.value as Config;
    const served = sources.filter(({ filter }) => filter !== undefined);
    const files = await Promise.all(
      served.map(async ({ name, filter, claims }) => {
        const servers = [...(filter?.names.include ?? []), 'io.github.stacklok/left-out'].map((each) => ({
          name: each,
          version: '1.0.0',
          description: 'd',
        }));
        const meta = { last_updated: '2026-01-01T00:00:00Z' };
        const content = JSON.stringify({ version: '1.0.0', meta, data: { servers } });
        const place = await folder.write(`${name}.json`, content);
        return { name, filter, claims, file: { path: place }, syncPolicy: { interval: '1h' } };
      }),
    );
    const oauth = {
      providers: [{ name: 'keycloak', issuerUrl: idp.issuer, audience: AUDIENCE, allowPrivateIP: true }],
    };
    return {
      sources: files,
      registries: registries.map(({ sources: linked, ...rest }) => ({
        ...rest,
        sources: linked.filter((name) => files.some((one) => one.name === name)),
      })),
      auth: { ...auth, oauth, ...changes },
    };
  }
  const asText = (config: Config): string => JSON.stringify({ ...config, storage: { path: ':memory:' } });

  test('is not served with a registry that its public path would open past the claims', async () => {
    const config = await folder.write('public.yaml', asText(await demo()));
    const { code, stderr } = await folder.run('serve', '--config', config);
    expect([code, stderr]).toEqual([1, expect.stringContaining('"/registry/public" would open a registry')]);
  });

  test('shows each user the tools of their groups', async () => {
    const config = await demo({ publicPaths: [] });
    const server = await serve(asText(config));
    const toolsOf = (groups: readonly string[]): string[] => [
      ...new Set(
        config.sources
          .filter(({ claims }) => groups.includes(claims?.groups ?? ''))
          .flatMap(({ filter }) => filter?.names.include ?? []),
      ),
    ];
    expect(realm.users.length).toBeGreaterThan(2);
    for (const { username, groups: paths } of realm.users) {
      // The realm's mapper writes groups without their path.
      const groups = paths.map((one) => one.slice(1));
      const token = await tokenOf({ sub: username, preferred_username: username, groups });
      for (const registry of ['demo-registry', 'public']) {
        expect([username, await sees(server, registry, token)]).toEqual([username, toolsOf(groups).sort()]);
      }
      const roles = username === 'demo' ? ['superAdmin', 'manageEntries'] : [];
      const own = groups.includes('engineering') ? ['manageEntries'] : [];
      const expected = [...new Set([...roles, ...own])];
      expect((await ask(server, '/v1/me', { token })).body).toEqual({ subject: username, roles: expected });
    }
    const stranger = await tokenOf({ sub: 'eve', groups: ['visitors'] });
    expect(await sees(server, 'demo-registry', stranger)).toBe(403);
    expect(await sees(server, 'public', stranger)).toEqual([]);
    expect(await sees(server, 'public')).toBe(401);
  });
});
