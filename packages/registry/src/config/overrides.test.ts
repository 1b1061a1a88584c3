import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { loadConfig } from './load.ts';
import { override, overridesFrom, scalarMembers } from './overrides.ts';
import { limitsShape } from '../shape/limits.ts';
import { pathText } from '../shape/problem.ts';
import { configShape } from './shape.ts';

/** Each member that holds one value: its variable, a text, and the value that the text stands for. */
type Row = [member: string, variable: string, text: string, value?: unknown];
const BY_HAND: Row[] = [
  ['limits.allowPrivateIP', 'LIMITS_ALLOWPRIVATEIP', 'true', true],
  ['limits.maxInvalidShare', 'LIMITS_MAXINVALIDSHARE', '0.25', 0.25],
  ['limits.requestRate.perSecond', 'LIMITS_REQUESTRATE_PERSECOND', '0.5', 0.5],
  ['limits.pageSize.default', 'LIMITS_PAGESIZE_DEFAULT', '10', 10],
  ['limits.requestTimeout', 'LIMITS_REQUESTTIMEOUT', '20s'],
  ['cors.maxAge', 'CORS_MAXAGE', '1m'],
  ['auth.mode', 'AUTH_MODE', 'oauth'],
  ['auth.oauth.resourceUrl', 'AUTH_OAUTH_RESOURCEURL', 'https://registry.example'],
  ['auth.oauth.realm', 'AUTH_OAUTH_REALM', 'acme'],
  ['auth.oauth.keysOutage', 'AUTH_OAUTH_KEYSOUTAGE', '2h'],
  ['auth.authz.preset', 'AUTH_AUTHZ_PRESET', 'strict'],
  ['auth.authz.requirePublishClaims', 'AUTH_AUTHZ_REQUIREPUBLISHCLAIMS', 'true', true],
  ['auth.authz.unlabeled', 'AUTH_AUTHZ_UNLABELED', 'deny'],
  ['auth.authz.arrayMatch', 'AUTH_AUTHZ_ARRAYMATCH', 'any'],
  ['auth.authz.managedSourceGate', 'AUTH_AUTHZ_MANAGEDSOURCEGATE', 'false', false],
  ['storage.path', 'STORAGE_PATH', '/data/r.db'],
  ['database.host', 'DATABASE_HOST', 'db'],
  ['database.port', 'DATABASE_PORT', '5433', 5433],
  ['database.database', 'DATABASE_DATABASE', 'registry'],
  ['database.user', 'DATABASE_USER', 'app'],
  ['database.migrationUser', 'DATABASE_MIGRATIONUSER', 'owner'],
  ['database.password', 'DATABASE_PASSWORD', '12345'],
  ['database.migrationPassword', 'DATABASE_MIGRATIONPASSWORD', 'true'],
  ['database.sslMode', 'DATABASE_SSLMODE', 'disable'],
  ['database.sslRootCert', 'DATABASE_SSLROOTCERT', '/ca.pem'],
  ['database.maxOpenConns', 'DATABASE_MAXOPENCONNS', '20', 20],
  ['database.maxIdleConns', 'DATABASE_MAXIDLECONNS', '0', 0],
  ['database.connMaxLifetime', 'DATABASE_CONNMAXLIFETIME', '5m'],
  ['database.maxMetaSize', 'DATABASE_MAXMETASIZE', '9', 9],
  ['database.dynamicAuth.awsRdsIam.region', 'DATABASE_DYNAMICAUTH_AWSRDSIAM_REGION', 'detect'],
  ['telemetry.enabled', 'TELEMETRY_ENABLED', 'true', true],
  ['telemetry.serviceName', 'TELEMETRY_SERVICENAME', 'catalogue'],
  ['telemetry.serviceVersion', 'TELEMETRY_SERVICEVERSION', '7'],
  ['telemetry.endpoint', 'TELEMETRY_ENDPOINT', 'otel:4318'],
  ['telemetry.insecure', 'TELEMETRY_INSECURE', 'true', true],
  ['telemetry.tracing.enabled', 'TELEMETRY_TRACING_ENABLED', 'false', false],
  ['telemetry.tracing.sampling', 'TELEMETRY_TRACING_SAMPLING', '1', 1],
  ['telemetry.metrics.enabled', 'TELEMETRY_METRICS_ENABLED', 'true', true],
  ['audit.enabled', 'AUDIT_ENABLED', 'true', true],
  ['audit.logFile', 'AUDIT_LOGFILE', '/var/log/audit.log'],
  ['audit.includeRequestData', 'AUDIT_INCLUDEREQUESTDATA', 'true', true],
  ['audit.maxDataSize', 'AUDIT_MAXDATASIZE', '512', 512],
];

/** The other limits, which are numbers: a new one is a row of its table alone. */
const ROWS = [
  ...BY_HAND,
  ...scalarMembers(limitsShape, ['limits']).flatMap(({ path, kind }): Row[] => {
    const member = pathText(path);
    if (kind !== 'number' || BY_HAND.some(([known]) => known === member)) return [];
    return [[member, path.map(String).join('_').toUpperCase(), '20', 20]];
  }),
];

describe('a variable of the environment', () => {
  test('exists for every member that holds one value, and for nothing else', () => {
    const members = scalarMembers(configShape).map(({ path }) => pathText(path));
    expect(ROWS.map(([member]) => member).toSorted()).toEqual(members.toSorted());
  });

  test.each<Row>(ROWS)('sets %s: SKEP_REGISTRY_%s=%s', (member, variable, text, value) => {
    const overrides = overridesFrom({ [`SKEP_REGISTRY_${variable}`]: text });
    const document = override({ sources: [] }, overrides);
    expect(document).toEqual({ sources: [], ...nested(member.split('.'), value ?? text) });
  });

  test('counts less than a flag, which is named first', () => {
    const path = ['auth', 'mode'];
    const flag = { path, value: 'oauth', from: '--auth-mode' };
    const env = overridesFrom({ SKEP_REGISTRY_AUTH_MODE: 'anonymous' });
    expect(override({ auth: { mode: 'anonymous' } }, [flag, ...env])).toEqual({ auth: { mode: 'oauth' } });
  });
});

const nested = ([first = '', ...rest]: readonly string[], value: unknown): object => ({
  [first]: rest.length === 0 ? value : nested(rest, value),
});

describe('a configuration with variables', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'skep-config-'));
  });
  afterEach(() => rm(directory, { recursive: true }));

  const load = async (env: Readonly<Record<string, string>>, more: object = {}) => {
    const text = JSON.stringify({
      sources: [{ name: 'files', file: { path: 'c.json' }, syncPolicy: { interval: '5m' } }],
      registries: [{ name: 'all', sources: ['files'] }],
      auth: { mode: 'anonymous' },
      ...more,
    });
    await writeFile(join(directory, 'c.yaml'), text);
    const overrides = overridesFrom(env);
    return loadConfig({ path: 'c.yaml', workingDirectory: directory, defaultStorePath: '/x', overrides });
  };

  test.each([
    ['TELEMETRY_ENABLED', 'yes', 'telemetry.enabled: must be true or false, not "yes"'],
    ['TELEMETRY_TRACING_SAMPLING', '2', 'telemetry.tracing.sampling: must be greater than 0 and at most 1'],
    ['AUDIT_MAXDATASIZE', '1k', 'audit.maxDataSize: must be a number, not "1k"'],
    ['LIMITS_MAXBODYSIZE', '10', 'limits.maxBodySize: must be a whole number from 1024 to 1073741824'],
    ['CORS_MAXAGE', '25h', 'cors.maxAge: must not exceed 24h'],
  ])('names SKEP_REGISTRY_%s=%s where it is wrong', async (variable, text, problem) => {
    const loaded = await load({ [`SKEP_REGISTRY_${variable}`]: text }, { cors: { allowedOrigins: ['*'] } });
    expect(loaded).toEqual({ problems: [`SKEP_REGISTRY_${variable}: ${problem}`] });
  });

  test('is what the variables make of it', async () => {
    const env = {
      SKEP_REGISTRY_AUDIT_ENABLED: 'true',
      SKEP_REGISTRY_TELEMETRY_ENABLED: 'true',
      SKEP_REGISTRY_TELEMETRY_METRICS_ENABLED: 'true',
      SKEP_REGISTRY_LIMITS_PAGESIZE_MAX: '20',
    };
    expect(await load(env)).toMatchObject({
      config: {
        audit: { logFile: 'stdout' },
        telemetry: { metrics: 'on' },
        limits: { pageSize: { default: 20, max: 20 } },
      },
    });
  });

  test('never shows a password that is written as something else than a text', async () => {
    const database = {
      host: 'h',
      port: 1,
      database: 'd',
      user: 'u',
      password: 73_422,
      migrationPassword: ['s'],
    };
    const loaded = await load({}, { database });
    const problems = 'problems' in loaded ? loaded.problems.join('\n') : '';
    expect(problems).toMatch(/database\.password: must be a text$/m);
    expect(problems).not.toContain('73422');
  });
});
