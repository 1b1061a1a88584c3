import { parseClaims, type Claims } from '@skep/auth/claims/claims.ts';
import type { RoleRules } from '@skep/auth/claims/roles.ts';
import { expect, test } from 'vitest';
import { CONTRACT_SWITCHES } from '../access/authority.ts';
import type { AuthConfig, OauthAuth } from '../config/auth.ts';
import { startWarnings, type WarnedConfig } from './start-warnings.ts';
import type { PostgresSettings } from '../store/postgres/settings.ts';
import type { NamedSource } from '../store/rows.ts';

const claims = (value: object): Claims => parseClaims(value);
const ADMIN: RoleRules = { superAdmin: [claims({ role: 'root' })] };

const anonymous = (unusedRoles: RoleRules = {}): AuthConfig => ({
  mode: 'anonymous',
  unusedRoles,
  allowedHosts: [],
});
const oauth = (access: 'auth-only' | RoleRules): OauthAuth => ({
  mode: 'oauth',
  access:
    access === 'auth-only'
      ? { kind: 'auth-only' }
      : { kind: 'full', rules: access, switches: CONTRACT_SWITCHES },
  publicPaths: [],
  resource: { url: undefined, realm: 'r', scopes: undefined },
  providers: [],
  logins: [],
});
const insecure: OauthAuth['providers'][number] = {
  name: 'lan',
  issuerUrl: 'http://idp.test',
  allowPrivateIP: true,
  plainHttp: 'any',
  rules: { audience: 'skep', leewayS: 5, subject: 'optional' },
  issuerMatch: 'exact',
  forcedRefreshEveryMs: 1000,
};
const corp = { ...insecure, name: 'corp', plainHttp: 'never' } as const;
const partner = { ...corp, name: 'partner' };
const source = (name: string, given: Partial<NamedSource> = {}): NamedSource => ({
  name,
  kind: 'file',
  config: '{}',
  format: null,
  filter: null,
  interval: 1000,
  claims: '{"org":"acme"}',
  ...given,
});
const database = (given: Pick<PostgresSettings, 'awsRdsIam' | 'password' | 'sslMode'>): PostgresSettings => ({
  host: 'db',
  port: 5432,
  database: 'registry',
  user: 'app',
  ...given,
});
const config = (given: Partial<WarnedConfig>): WarnedConfig => ({
  auth: oauth(ADMIN),
  sources: [source('files')],
  registries: [{ name: 'all', sources: ['files'], claims: '' }],
  ...given,
});

test.each<[condition: string, given: Partial<WarnedConfig>, lines: readonly string[]]>([
  ['full authorization with everything in place', {}, []],
  [
    'oauth without authz',
    { auth: oauth('auth-only') },
    ['Authorization not configured, per-entry claims filtering disabled (auth-only mode)'],
  ],
  [
    'anonymous mode, which does not warn about claims filtering',
    { auth: anonymous() },
    ['Anonymous mode: authentication and authorization are disabled; development only'],
  ],
  [
    'anonymous mode with roles',
    { auth: anonymous(ADMIN) },
    [
      'Anonymous mode: authentication and authorization are disabled; development only',
      'Authorization roles configured but auth is disabled (anonymous mode); role checks are skipped',
    ],
  ],
  [
    'plain http allowed for issuers',
    { auth: { ...oauth(ADMIN), providers: [insecure] } },
    ['SKEP_REGISTRY_INSECURE_URL is set: identity providers may be reached over plain http'],
  ],
  [
    'a synchronised source without claims in full authorization',
    { sources: [source('files', { claims: '' })] },
    ['a source without claims: its entries are invisible to everyone except super-admins'],
  ],
  ['a managed source without claims', { sources: [source('own', { kind: 'managed', claims: '' })] }, []],
  [
    'a source without claims in auth-only mode, but for the mode itself',
    { auth: oauth('auth-only'), sources: [source('files', { claims: '' })] },
    ['Authorization not configured, per-entry claims filtering disabled (auth-only mode)'],
  ],
  [
    'publishers without a managed source',
    { auth: oauth({ ...ADMIN, manageEntries: [claims({ role: 'writer' })] }) },
    ['the role manageEntries is configured and no managed source: publishing will fail'],
  ],
  [
    'an empty map of a role',
    { auth: oauth({ ...ADMIN, manageSources: [claims({})] }) },
    ['auth.authz.roles.manageSources holds an empty rule, which matches nobody'],
  ],
  [
    'authz without roles',
    { auth: oauth({}) },
    ['Authorization is on and no role is granted to anybody: nothing can be administered'],
  ],
  [
    'two identity providers and a rule that either can fulfil',
    { auth: { ...oauth(ADMIN), providers: [corp, partner] } },
    [
      'auth.authz.roles.superAdmin holds a rule without "iss": each of the identity providers "corp", "partner" can grant it; name the issuer in the rule, or say in grants of each provider what it may',
    ],
  ],
  [
    'two identity providers, of which one may grant the role',
    { auth: { ...oauth(ADMIN), providers: [corp, { ...partner, grants: { roles: ['manageEntries'] } }] } },
    [],
  ],
  [
    'two identity providers and a rule that names the issuer',
    {
      auth: {
        ...oauth({ superAdmin: [claims({ role: 'root', iss: 'https://corp.test' })] }),
        providers: [corp, partner],
      },
    },
    [],
  ],
  [
    'a gate that asks for what no source carries',
    { registries: [{ name: 'all', sources: ['files'], claims: '{"org":"acme","team":"x"}' }] },
    ['no source of the registry carries this claim of its gate'],
  ],
  [
    'a gate over a managed source, whose entries may carry anything',
    {
      sources: [source('own', { kind: 'managed' })],
      registries: [{ name: 'all', sources: ['own'], claims: '{"team":"x"}' }],
    },
    [],
  ],
  [
    'tokens for a database that proves nothing',
    { database: database({ awsRdsIam: { region: 'detect' }, sslMode: 'require' }) },
    [
      'database.sslMode "require" does not prove who the server is: whoever answers in its place gets a token for the database; use verify-full',
    ],
  ],
  [
    'tokens for a database that proves itself',
    { database: database({ awsRdsIam: { region: 'detect' }, sslMode: 'verify-full' }) },
    [],
  ],
  ['a database with a password', { database: database({ password: 'x', sslMode: 'require' }) }, []],
])('%s', (_, given, lines) => {
  expect(startWarnings(config(given)).map(({ message }) => message)).toEqual(lines);
});
