import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startWarnings } from '../server/start-warnings.ts';
import { CONTRACT_SWITCHES, STRICT_SWITCHES } from '../access/authority.ts';
import type { AuthConfig, OauthAuth } from './auth.ts';
import { loadConfig, type Loaded } from './load.ts';
import { plainHttpFrom } from './environment.ts';
import { overridesFrom } from './overrides.ts';

const PROVIDER = { name: 'corp', issuerUrl: 'https://idp.example', audience: 'mcp-registry' };
const OAUTH = { providers: [PROVIDER] };

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'skep-config-'));
});
afterEach(() => rm(directory, { recursive: true }));

async function load(auth: unknown, env: Readonly<Record<string, string>> = {}): Promise<Loaded> {
  return loadText(
    `${JSON.stringify({
      sources: [{ name: 'files', file: { path: 'c.json' }, syncPolicy: { interval: '5m' } }],
      registries: [{ name: 'all', sources: ['files'] }],
      auth,
    })}\n`,
    env,
  );
}

async function loadText(text: string, env: Readonly<Record<string, string>> = {}): Promise<Loaded> {
  await writeFile(join(directory, 'c.yaml'), text);
  return loadConfig({
    path: 'c.yaml',
    workingDirectory: directory,
    defaultStorePath: '/data/registry.db',
    overrides: overridesFrom(env),
    plainHttp: plainHttpFrom(env),
  });
}

async function authOf(auth: unknown): Promise<AuthConfig> {
  const loaded = await load(auth);
  if ('problems' in loaded) throw new Error(loaded.problems.join('\n'));
  return loaded.config.auth;
}

async function oauthOf(changes: Readonly<Record<string, unknown>>): Promise<OauthAuth> {
  const auth = await authOf({ mode: 'oauth', oauth: OAUTH, ...changes });
  if (auth.mode !== 'oauth') throw new Error('anonymous');
  return auth;
}

/** What is wrong, without file, line and column. */
async function problemsOf(
  auth: unknown,
  env: Readonly<Record<string, string>> = {},
): Promise<readonly string[]> {
  const loaded = await load(auth, env);
  return 'problems' in loaded ? loaded.problems.map((line) => line.replace(/^c\.yaml:\d+:\d+: /, '')) : [];
}

describe('the auth block', () => {
  test('gives every setting of a provider its place, with the documented defaults', async () => {
    expect(
      await oauthOf({ publicPaths: ['/docs/'], oauth: { ...OAUTH, resourceUrl: 'https://r.example' } }),
    ).toEqual({
      mode: 'oauth',
      access: { kind: 'auth-only' },
      publicPaths: ['/docs'],
      resource: { url: 'https://r.example', realm: 'mcp-registry', scopes: undefined },
      providers: [
        {
          name: 'corp',
          issuerUrl: 'https://idp.example',
          allowPrivateIP: false,
          plainHttp: 'loopback',
          rules: { audience: 'mcp-registry', leewayS: 5, subject: 'optional' },
          issuerMatch: 'exact',
          forcedRefreshEveryMs: 60_000,
          keysOutageMs: 3_600_000,
        },
      ],
      logins: [{ issuer: 'https://idp.example' }],
    });
  });

  test('says how people sign in at the providers that say so, and at all where none does', async () => {
    const login = { clientId: 'skep-cli', scopes: ['openid', 'api://x/.default'], audience: 'urn:mcp' };
    const other = { ...PROVIDER, name: 'other', issuerUrl: 'https://other.example' };
    const logins = async (...providers: readonly object[]) =>
      (await oauthOf({ oauth: { providers } })).logins;
    expect(await logins(PROVIDER, { ...other, login })).toEqual([
      { issuer: 'https://other.example', ...login },
    ]);
    expect(await logins(PROVIDER, other)).toEqual([
      { issuer: 'https://idp.example' },
      { issuer: 'https://other.example' },
    ]);
  });

  test('takes no secret and no two scopes in one for people to sign in with', async () => {
    const login = { clientSecret: 's', scopes: ['a b'] };
    expect(await problemsOf({ oauth: { providers: [{ ...PROVIDER, login }] } })).toEqual([
      expect.stringContaining('clientSecret'),
      expect.stringMatching(/login\.scopes\[0\].*must be a scope without blanks/),
    ]);
  });

  test('is oauth when no mode is given', async () => {
    expect(await authOf({ oauth: OAUTH })).toMatchObject({ mode: 'oauth' });
  });

  test.each<[name: string, authz: unknown, access: unknown]>([
    ['an empty map', {}, { kind: 'full', rules: {}, switches: CONTRACT_SWITCHES }],
    ['a key with nothing behind it', null, { kind: 'full', rules: {}, switches: CONTRACT_SWITCHES }],
    ['the strict preset', { preset: 'strict' }, { kind: 'full', rules: {}, switches: STRICT_SWITCHES }],
    [
      'one switch over the preset',
      { preset: 'strict', arrayMatch: 'all' },
      { kind: 'full', switches: { ...STRICT_SWITCHES, arrayMatch: 'all' } },
    ],
    [
      'roles, their claims with case and dots as written',
      { roles: { superAdmin: [{ orgId: 'A', 'https://x.example/y': ['b'] }], manageEntries: [{}] } },
      {
        kind: 'full',
        rules: { superAdmin: [{ orgId: 'A', 'https://x.example/y': ['b'] }], manageEntries: [{}] },
      },
    ],
  ])('reads %s of authz as full authorization', async (_name, authz, access) => {
    expect((await oauthOf({ authz })).access).toMatchObject(Object(access));
  });

  test('keeps a claim that is called __proto__ as data', async () => {
    const loaded = await loadText(`sources: [{ name: a, managed: {} }]
registries: [{ name: a, sources: [a], claims: { __proto__: x } }]
auth:
  oauth: { providers: [${JSON.stringify(PROVIDER)}] }
  authz: { roles: { superAdmin: [{ __proto__: x }] } }
`);
    expect(loaded).not.toHaveProperty('problems');
    if ('problems' in loaded || loaded.config.auth.mode !== 'oauth') throw new Error('not loaded');
    const { access } = loaded.config.auth;
    const rule = access.kind === 'full' ? access.rules.superAdmin?.[0] : undefined;
    expect(Object.entries(rule ?? {})).toEqual([['__proto__', 'x']]);
    expect(loaded.config.registries[0]?.claims).toBe('{"__proto__":["x"]}');
  });

  test.each<[auth: unknown, ...problems: string[]]>([
    [
      { mode: 'oauth' },
      'auth.oauth: auth.oauth is required when auth.mode is oauth (the default); set auth.mode to anonymous to let everyone read everything',
    ],
    [{ oauth: {} }, 'auth.oauth.providers: is required (a list)'],
    [{ oauth: { providers: [] } }, 'auth.oauth.providers: must hold at least one identity provider'],
    [
      { oauth: { providers: [{}] } },
      'auth.oauth.providers[0].name: is required (a text)',
      'auth.oauth.providers[0].issuerUrl: is required (a text)',
      'auth.oauth.providers[0].audience: is required (a text)',
    ],
    [
      { oauth: { providers: [{ ...PROVIDER, issuerUrl: 'http://idp.example' }] } },
      'auth.oauth.providers[0].issuerUrl: address "http://idp.example/" of an identity provider must be an absolute https URL without credentials',
    ],
    [
      {
        oauth: { providers: [{ ...PROVIDER, jwksUrl: 'keys', introspectionUrl: 'https://u:p@x.example/i' }] },
      },
      'auth.oauth.providers[0].jwksUrl: address "keys" of an identity provider must be an absolute https URL without credentials',
      'auth.oauth.providers[0].introspectionUrl: address "https://x.example/i" of an identity provider must be an absolute https URL without credentials',
    ],
    [
      { oauth: { providers: [{ ...PROVIDER, caCertPath: 'ca.pem', clientSecretFile: '/run/secret' }] } },
      'auth.oauth.providers[0].caCertPath: must be an absolute path, not "ca.pem"',
      'auth.oauth.providers[0].clientSecretFile: needs clientId beside it',
    ],
    [
      { oauth: { providers: [{ ...PROVIDER, audiense: 'x' }] } },
      'auth.oauth.providers[0].audiense: unknown key "audiense"; did you mean "audience"?',
    ],
    [
      { oauth: { ...OAUTH, resourceUrl: 'registry' } },
      'auth.oauth.resourceUrl: resource URL "registry" is not an absolute http or https URL',
    ],
    [
      { oauth: OAUTH, authz: { roles: { manageEntry: [] } } },
      'auth.authz.roles.manageEntry: unknown key "manageEntry"; did you mean "manageEntries"?',
    ],
    [
      { oauth: OAUTH, authz: { roles: { superAdmin: [{ level: 3 }] } } },
      'auth.authz.roles.superAdmin[0].level: claim "level": value must be a string or array of strings',
    ],
    [{ oauth: OAUTH, authz: { preset: 'lax' } }, 'auth.authz.preset: must be "strict", not "lax"'],
    [{ oauth: OAUTH, publicPaths: ['/'] }, 'auth.publicPaths[0]: "/" would open the admin API to everyone'],
    [
      { oauth: OAUTH, publicPaths: ['/v1', '/v1/me', '/v10'] },
      'auth.publicPaths[0]: "/v1" would open the admin API to everyone',
      'auth.publicPaths[1]: "/v1/me" would open the admin API to everyone',
      'auth.publicPaths[2]: "/v10" would open the admin API to everyone',
    ],
    [
      { oauth: OAUTH, publicPaths: ['/registry/all', '/all/v0.1'], authz: {} },
      'auth.publicPaths[0]: "/registry/all" would open a registry to everyone, past its claims',
      'auth.publicPaths[1]: "/all/v0.1" would open a registry to everyone, past its claims',
    ],
    [
      { oauth: OAUTH, publicPaths: ['docs', '/a/../v1', '/%76%31', '/a//b'] },
      'auth.publicPaths[0]: must be a plain path such as "/docs", not "docs"',
      'auth.publicPaths[1]: must be a plain path such as "/docs", not "/a/../v1"',
      'auth.publicPaths[2]: must be a plain path such as "/docs", not "/%76%31"',
      'auth.publicPaths[3]: must be a plain path such as "/docs", not "/a//b"',
    ],
  ])('refuses %j', async (auth, ...problems) => {
    expect(await problemsOf(auth)).toEqual(problems);
  });

  test.each(['http://localhost:9', 'http://127.0.0.1:9', 'http://[::1]:9', ' https://idp.example '])(
    'accepts the issuer "%s"',
    async (issuerUrl) => {
      const provider = { ...PROVIDER, issuerUrl, allowPrivateIP: true };
      expect(await problemsOf({ oauth: { providers: [provider] } })).toEqual([]);
    },
  );

  test.each([
    ['issuerUrl', 'https://10.0.0.7/idp', '10.0.0.7'],
    ['issuerUrl', 'http://localhost:9', 'localhost'],
    ['issuerUrl', 'http://[::1]:9', '[::1]'],
    ['jwksUrl', 'https://192.168.1.1/keys', '192.168.1.1'],
    ['introspectionUrl', 'https://idp.localhost/ask', 'idp.localhost'],
  ])('refuses %s %s, of which the first caller would otherwise get 503', async (member, url, host) => {
    const problems = await problemsOf({ oauth: { providers: [{ ...PROVIDER, [member]: url }] } });
    const why = `"${host}" is a private address; set allowPrivateIP: true beside it if the provider is there`;
    expect(problems).toEqual([`auth.oauth.providers[0].${member}: ${why}`]);
  });

  test('accepts http issuers anywhere by environment only', async () => {
    const auth = { oauth: { providers: [{ ...PROVIDER, issuerUrl: 'http://idp.example' }] } };
    expect(await problemsOf(auth, { SKEP_REGISTRY_INSECURE_URL: 'true' })).toEqual([]);
    expect(await problemsOf(auth, { SKEP_REGISTRY_INSECURE_URL: '1' })).toHaveLength(1);
  });

  test('may open a registry where nothing but a token is asked for', async () => {
    expect(await problemsOf({ oauth: OAUTH, publicPaths: ['/registry/all'] })).toEqual([]);
  });

  test('is overridden by variables, which are named where they are wrong', async () => {
    expect(await problemsOf({ oauth: OAUTH }, { SKEP_REGISTRY_AUTH_OAUTH_RESOURCEURL: 'x' })).toEqual([
      'SKEP_REGISTRY_AUTH_OAUTH_RESOURCEURL: auth.oauth.resourceUrl: resource URL "x" is not an absolute http or https URL',
    ]);
  });
});

describe('the warnings about the mode', () => {
  const warningsOf = async (auth: unknown): Promise<string[]> =>
    startWarnings({ auth: await authOf(auth), sources: [], registries: [] }).map(({ message }) => message);
  const first = async (auth: unknown): Promise<string | undefined> => (await warningsOf(auth))[0];

  test('say that nothing is protected, that claims are not, or that nobody administers', async () => {
    expect(await first({ mode: 'anonymous' })).toMatch(/^Anonymous mode: /);
    expect(await first({ oauth: OAUTH })).toBe(
      'Authorization not configured, per-entry claims filtering disabled (auth-only mode)',
    );
    expect(await first({ oauth: OAUTH, authz: {} })).toMatch(/no role is granted to anybody/);
    expect(await first({ oauth: OAUTH, authz: { roles: { superAdmin: [{ a: 'b' }] } } })).toBeUndefined();
    expect(await first({ oauth: OAUTH, authz: { roles: { superAdmin: [{}] } } })).toMatch(/empty rule/);
  });

  test('say in anonymous mode that configured roles are not used', async () => {
    const auth = { mode: 'anonymous', authz: { roles: { superAdmin: [{ a: 'b' }] } } };
    expect((await warningsOf(auth))[1]).toMatch(/^Authorization roles configured but auth is disabled/);
  });
});
