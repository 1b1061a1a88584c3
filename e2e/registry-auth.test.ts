import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AUDIENCE, type IdentityProvider, startIdentityProvider } from './fixtures/identity-provider.ts';
import { RegistryFolder, type Running } from './registry/process.ts';
import { component, sharedData, title } from './require.ts';

// The program with a real identity provider, in every mode, for the personas and catalogues of the shared data.

const data = await component('shared-data');
const shared = (name: string): string => path.join(sharedData, 'claims', name);
const personas: readonly { persona: string; claims: Record<string, unknown> }[] = data.available
  ? JSON.parse(readFileSync(shared('personas.json'), 'utf8'))
  : [];

const catalogue = (...names: readonly string[]): string =>
  JSON.stringify({
    version: '1.0.0',
    meta: { last_updated: '2026-01-01T00:00:00Z' },
    data: { servers: names.map((name) => ({ name, version: '1.0.0', description: `Serves ${name}` })) },
  });

const ROLES = {
  superAdmin: [{ role: 'super-admin' }],
  manageSources: [{ role: 'admin' }],
  manageRegistries: [{ role: 'admin' }],
  manageEntries: [{ role: 'writer' }],
};
type Mode = 'anonymous' | 'auth-only' | 'full';

let idp: IdentityProvider;
let folder: RegistryFolder;
beforeAll(async () => {
  idp = await startIdentityProvider();
  folder = await RegistryFolder.create();
  await folder.write('shared.json', catalogue('com.acme/shared'));
  await folder.write('platform.json', catalogue('com.acme/platform-one', 'com.acme/platform-two'));
  await folder.write('data.json', catalogue('com.acme/data-one'));
});
afterAll(async () => {
  await folder.remove();
  await idp.stop();
});

async function serve(mode: Mode, files: Readonly<Record<string, string>> = {}): Promise<Running> {
  const file = (name: string): string => files[name] ?? `${name}.json`;
  const source = (name: string, claims: object) => ({
    name,
    file: { path: file(name) },
    syncPolicy: { interval: '1h' },
    claims: { org: 'acme', ...claims },
  });
  const oauth = {
    resourceUrl: 'http://127.0.0.1:8080',
    providers: [
      {
        name: 'test',
        issuerUrl: idp.issuer,
        audience: AUDIENCE,
        allowPrivateIP: true,
        introspectionUrl: idp.introspection.url,
        clientId: idp.introspection.clientId,
        clientSecretFile: await folder.write('secret', `${idp.introspection.clientSecret}\n`),
      },
    ],
  };
  const config = {
    sources: [
      source('shared', {}),
      source('platform', { team: 'platform' }),
      source('data', { team: 'data' }),
    ],
    registries: [
      { name: 'acme-all', sources: ['shared', 'platform', 'data'], claims: { org: 'acme' } },
      { name: 'acme-platform', sources: ['shared', 'platform'], claims: { org: 'acme', team: 'platform' } },
      { name: 'acme-data', sources: ['shared', 'data'], claims: { org: 'acme', team: 'data' } },
    ],
    auth:
      mode === 'anonymous'
        ? { mode }
        : { mode: 'oauth', oauth, ...(mode === 'full' ? { authz: { roles: ROLES } } : {}) },
    storage: { path: ':memory:' },
  };
  return folder.serve(await folder.write(`${mode}.yaml`, JSON.stringify(config)));
}

const bearer = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });

/** Names that a caller sees in a registry, walked by pages of one; or the status when it is no list. */
async function sees(
  running: Running,
  registry: string,
  headers: Record<string, string>,
): Promise<string[] | number> {
  const names: string[] = [];
  let cursor = '';
  do {
    const query = `version=latest&limit=1${cursor === '' ? '' : `&cursor=${cursor}`}`;
    const response = await fetch(`${running.open}/registry/${registry}/v0.1/servers?${query}`, { headers });
    const body = await response.text();
    if (response.status !== 200) return response.status;
    const page: { servers: { server: { name: string } }[]; metadata: { nextCursor?: string } } =
      JSON.parse(body);
    names.push(...page.servers.map(({ server }) => server.name));
    cursor = page.metadata.nextCursor ?? '';
  } while (cursor !== '');
  return names;
}

const EVERY = ['com.acme/data-one', 'com.acme/platform-one', 'com.acme/platform-two', 'com.acme/shared'];
const PLATFORM = EVERY.slice(1);
const DATA = ['com.acme/data-one', 'com.acme/shared'];
const FULL: Readonly<
  Record<string, readonly [all: unknown, platform: unknown, data: unknown, roles: string[]]>
> = {
  'super-admin': [EVERY, PLATFORM, DATA, ['superAdmin']],
  'platform-admin': [PLATFORM, PLATFORM, 403, ['manageSources', 'manageRegistries']],
  'platform-writer': [PLATFORM, PLATFORM, 403, ['manageEntries']],
  'data-writer': [DATA, 403, DATA, ['manageEntries']],
  outsider: [403, 403, 403, ['manageSources', 'manageRegistries']],
};

async function me(running: Running, headers: Record<string, string>): Promise<unknown> {
  const response = await fetch(`${running.open}/v1/me`, { headers });
  return response.status === 200 ? response.json() : response.status;
}

describe.skipIf(!data.available)(title('personas of the shared data', data), () => {
  describe.each(['jwt', 'opaque'] as const)('with tokens as %s, in full authorization', (format) => {
    let running: Running;
    beforeAll(async () => {
      running = await serve('full');
    });
    afterAll(() => running.stop());

    test.each(personas)('$persona sees exactly what its claims cover', async ({ persona, claims }) => {
      const { aud: _set, ...own } = claims;
      const headers = bearer(await idp.token(own, { format }));
      const [all, platform, dataOnly, roles] = FULL[persona] ?? [];
      expect(await sees(running, 'acme-all', headers)).toEqual(all);
      expect(await sees(running, 'acme-platform', headers)).toEqual(platform);
      expect(await sees(running, 'acme-data', headers)).toEqual(dataOnly);
      expect(await me(running, headers)).toEqual({ subject: claims['sub'], roles });
    });
  });

  test('see everything in auth-only mode, have no roles, and the log says so at start', async () => {
    const running = await serve('auth-only');
    expect(running.stderr()).toContain(
      'Authorization not configured, per-entry claims filtering disabled (auth-only mode)',
    );
    for (const { claims } of personas) {
      const { aud: _set, ...own } = claims;
      const headers = bearer(await idp.token(own));
      expect(await sees(running, 'acme-all', headers)).toEqual(EVERY);
      expect(await sees(running, 'acme-data', headers)).toEqual(DATA);
      expect(await me(running, headers)).toEqual({ subject: claims['sub'], roles: [] });
    }
    expect(await sees(running, 'acme-all', {})).toBe(401);
    expect(running.stderr()).not.toContain('eyJ');
    await running.stop();
  });

  test('are nobody in anonymous mode, and see everything', async () => {
    const running = await serve('anonymous');
    const token = await idp.token({ org: 'contoso' });
    for (const headers of [{}, bearer(token), bearer('nonsense')]) {
      expect(await sees(running, 'acme-platform', headers)).toEqual(PLATFORM);
      expect(await me(running, headers)).toBe(401);
    }
    await running.stop();
  });

  test('see the catalogues that lie beside them by the claims of their sources', async () => {
    const running = await serve('full', {
      platform: shared('platform-registry.json'),
      data: shared('data-registry.json'),
    });
    const count = async (claims: Record<string, unknown>): Promise<number> => {
      const seen = await sees(running, 'acme-all', bearer(await idp.token(claims)));
      return Array.isArray(seen) ? seen.length : -seen;
    };
    const [platform, dataOnly] = [
      await count({ org: 'acme', team: 'platform' }),
      await count({ org: 'acme', team: 'data' }),
    ];
    expect(platform).toBeGreaterThan(1);
    expect(dataOnly).toBeGreaterThan(1);
    // The shared entry is in both.
    expect(await count({ org: 'acme', team: ['platform', 'data'] })).toBe(platform + dataOnly - 1);
    await running.stop();
  });
});

describe('the program with sign-in', () => {
  test('starts while the identity provider is away, answers 503, and recovers by itself', async () => {
    const token = await idp.token({ org: 'acme' });
    await idp.stop();
    const running = await serve('full');
    const answer = await fetch(`${running.open}/registry/acme-all/v0.1/servers`, { headers: bearer(token) });
    expect([answer.status, Number(answer.headers.get('retry-after')) > 0]).toEqual([503, true]);
    expect((await fetch(`${running.open}/openapi.json`)).status).toBe(200);
    await idp.start();
    const end = Date.now() + 30_000;
    while ((await sees(running, 'acme-all', bearer(token))) === 503 && Date.now() < end) continue;
    expect(await sees(running, 'acme-all', bearer(token))).toEqual(['com.acme/shared']);
    await running.stop();
  });

  test('asks each identity provider when it serves, and tells operators of one that does not answer before a caller does', async () => {
    await idp.stop();
    const running = await serve('full');
    const readiness = async (): Promise<unknown> => {
      const answer = await fetch(`${running.internal}/readiness`);
      return [answer.status, await answer.json()];
    };
    const away = { status: 'ready', identity_providers_away: ['test'] };
    await expect.poll(readiness, { timeout: 30_000 }).toEqual([200, away]);
    expect(running.stderr()).toMatch(/"level":"warn".*"provider":"test"/);
    await idp.start();
    const asked = idp.requests.length;
    await expect.poll(readiness, { timeout: 30_000 }).toEqual([200, { status: 'ready' }]);
    expect(idp.requests.slice(asked)).toContain('GET /jwks');
    await running.stop();
  });

  test('refuses path tricks and doubled tokens as they come from the wire', async () => {
    const running = await serve('full');
    const token = await idp.token({ org: 'acme' });
    const { port } = new URL(running.open);
    const ask = async (target: string, ...headers: readonly string[]): Promise<number> => {
      const socket = net.connect(Number(port), '127.0.0.1');
      socket.write(
        [`GET ${target} HTTP/1.1`, 'Host: x', 'Connection: close', ...headers, '', ''].join('\r\n'),
      );
      let text = '';
      socket.on('data', (chunk: Buffer) => (text += chunk.toString()));
      await once(socket, 'close');
      return Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]);
    };
    const good = `Authorization: Bearer ${token}`;
    const list = '/registry/acme-all/v0.1/servers';
    expect(await ask(list, good)).toBe(200);
    expect(await ask(list, good, 'Authorization: Bearer x')).toBe(401);
    expect(await ask(list, 'Authorization: Bearer x', good)).toBe(401);
    for (const target of [
      '/openapi.json/..',
      '/.well-known/../v1/me',
      '/.well-known/%2e%2e/v1/me',
      '/./v1/me',
    ]) {
      expect(await ask(target)).toBe(400);
    }
    expect(await ask('/.well-known%2f..%2fv1%2fme')).toBe(401);
    expect(await ask('//v1/me')).toBe(401);
    expect(await ask(list)).toBe(401);
    await running.stop();
  });

  test.each([
    ['{}', 'auth.oauth is required when auth.mode is oauth'],
    ['{ oauth: { providers: [] } }', 'must hold at least one identity provider'],
  ])('does not start with auth %s, and says why in lines', async (auth, problem) => {
    const config = await folder.write(
      'bad.yaml',
      `sources: [{ name: a, file: { path: shared.json }, syncPolicy: { interval: 1h } }]
registries: [{ name: a, sources: [a] }]
auth: ${auth}
`,
    );
    const { code, stderr } = await folder.run('serve', '--config', config);
    expect(code).toBe(1);
    expect(stderr).toContain(problem);
  });
});
