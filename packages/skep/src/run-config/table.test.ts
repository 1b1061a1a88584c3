import type { Field, FieldValue } from '@skep/core/settings/field.ts';
import { valuesOf } from '@skep/core/settings/define-settings.ts';
import { fromArgv } from '@skep/core/settings/from-argv.ts';
import { showValue } from '@skep/core/settings/show-value.ts';
import { storedRows, storedShape, toDocument, toStored } from '@skep/core/settings/stored.ts';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runSettings } from '../settings/run-settings.ts';
import { decodeRunConfig, encodeRunConfig } from './run-config.ts';
import { STORED } from './stored-format.fixture.ts';
import { summaryOf } from './summary.ts';

const rows: readonly Field[] = runSettings;

const text = fc.string({ unit: 'grapheme-ascii' });
const texts = fc.array(text);
const name = fc.stringMatching(/^[A-Za-z][A-Za-z0-9_]{1,20}$/);
const port = fc.integer({ min: 0, max: 65_535 });
const duration = fc.constantFrom('1ms', '30s', '1m0s');

const bucket = fc.record({ maxTokens: fc.integer({ min: 1, max: 9 }), refillPeriod: duration });
const webhooks = fc.uniqueArray(
  fc.record(
    {
      name,
      url: fc.constantFrom('https://a.example', 'https://b.example/hook?x=1'),
      failure_policy: fc.constantFrom('fail', 'ignore'),
      timeout: fc.constantFrom('5s', 30_000_000_000),
      tls_config: fc.record({ ca_bundle_path: fc.constant('/ca.pem'), insecure_skip_verify: fc.boolean() }),
      hmac_secret_ref: fc.constantFrom('/key', 'secret', 'secret,target=X'),
    },
    { requiredKeys: ['name', 'url', 'failure_policy'] },
  ),
  { selector: (one) => one.name },
);

/** Values of rows that say more than their kind. */
const OWN: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  name,
  group: fc.stringMatching(/^[a-z0-9_-]{1,20}$/),
  container_labels: fc.dictionary(name, text),
  debug: fc.boolean(),
  runtime: fc.record({ kind: fc.constantFrom('docker', 'sandbox', 'remote'), id: text, endpoint: text }),
  transport: fc.constantFrom('stdio', 'sse', 'streamable-http'),
  proxy_mode: fc.constantFrom('streamable-http', 'sse', ''),
  port,
  host: fc.oneof(fc.ipV4(), fc.constantFrom('::', '::1', 'fd00::a:1')),
  target_host: fc.constantFrom('', 'localhost', '127.0.0.1', 'db.example'),
  target_port: port,
  endpoint_prefix: fc.constantFrom('', '/', '/a', '/a/b/'),
  publish: fc.array(fc.constantFrom('80', '8080:80')),
  env_vars: fc.dictionary(name, text),
  volumes: texts,
  'ignore_config.load_global': fc.boolean(),
  'ignore_config.print_overlays': fc.boolean(),
  permission_profile_name_or_path: text,
  memory: fc.constantFrom('64m', '1.5g', 'none'),
  cpus: fc.constantFrom('0.5', '2', 'none'),
  pids_limit: fc.constantFrom('100', 'none'),
  disk: fc.constantFrom('1g', 'none'),
  sandbox_user: fc.constantFrom('root', '1000', '1000:1000'),
  session_ttl: duration,
  schema_version: fc.constantFrom('v0.1.0', 'v0.2.0'),
  image: text.filter((one) => one !== ''),
  package: fc.record({ kind: fc.constant('package'), ecosystem: fc.constantFrom('npm', 'go'), name }),
  image_is_ours: fc.boolean(),
  'runtime_config.runtime_env': fc.dictionary(
    fc.stringMatching(/^X_[A-Z]{1,9}$/),
    fc.constantFrom('', 'a b', '$x'),
  ),
  registry_url: text,
  registry_api_url: text,
  registry_server_name: text,
  remote_url: fc.constantFrom('', 'https://x.example/mcp?a=b', 'http://127.0.0.1:1/'),
  remote_allow_private_ip: fc.boolean(),
  cmd_args: texts,
  allowed_origins: fc.array(fc.constantFrom('https://a.example', 'http://b.example:80')),
  stateless: fc.boolean(),
  strict_protocol_validation: fc.boolean(),
  permission_profile: fc.record({ read: texts, privileged: fc.boolean() }, { requiredKeys: [] }),
  secret_env: fc.array(name),
  package_version: text,
  data_paths: fc.array(fc.constantFrom('/data', '/var/lib/x'), { maxLength: 8 }),
  secrets: fc.array(fc.constantFrom('a,target=B', 'op://v/i/f,target=C_D')),
  'oidc_config.required_scopes': texts,
  rate_limit_config: fc.record(
    {
      shared: bucket,
      perUser: bucket,
      tools: fc.constant([{ name: 'a', perUser: { maxTokens: 1, refillPeriod: '1s' } }]),
    },
    { requiredKeys: ['shared'] },
  ),
  'scaling_config.session_redis': fc.record(
    {
      address: fc.constantFrom('redis:6379', 'rediss://a@b.example/1'),
      db: fc.nat({ max: 15 }),
      key_prefix: fc.constant('x:'),
    },
    { requiredKeys: ['address'] },
  ),
  tools_filter: texts,
  validating_webhooks: webhooks,
  mutating_webhooks: webhooks,
  'token_exchange_config.subject_token_type': fc.constantFrom(
    'access_token',
    'jwt',
    'urn:ietf:params:oauth:token-type:id_token',
  ),
  'token_exchange_config.header_strategy': fc.constantFrom('replace', 'custom'),
  'token_exchange_config.resource': text,
  'remote_auth_config.issuer_found': fc.boolean(),
  'remote_auth_config.scope_param_name': text,
  'remote_auth_config.oauth_params': fc.dictionary(name, text),
  tools_override: fc.dictionary(name, fc.record({ name: text, description: text }, { requiredKeys: [] })),
  authz_config: fc.dictionary(name, fc.jsonValue()),
  audit_config: fc.record(
    { component: text, maxDataSize: fc.nat({ max: 65_536 }), eventTypes: fc.constant(['mcp_tool_call']) },
    { requiredKeys: [] },
  ),
  'telemetry_config.endpoint': fc.constantFrom('', 'localhost:4318'),
  'telemetry_config.serviceName': text,
  'telemetry_config.headers': fc.dictionary(name, text),
  'telemetry_config.insecure': fc.boolean(),
  'telemetry_config.tracingEnabled': fc.boolean(),
  'telemetry_config.metricsEnabled': fc.boolean(),
  'telemetry_config.samplingRate': fc.constantFrom(0, 0.5, 1),
  'telemetry_config.customAttributes': fc.dictionary(name, text),
  'telemetry_config.environmentVariables': fc.array(name),
  'telemetry_config.enablePrometheusMetricsPath': fc.boolean(),
  'telemetry_config.useLegacyAttributes': fc.boolean(),
  'telemetry_config.serviceVersion': text,
  'telemetry_config.caCertPath': text,
  telemetry_environment: fc.dictionary(name, text),
  k8s_pod_template_patch: text.filter((one) => one !== ''),
  hardening: fc.constantFrom('other-user', 'read-only', 'none'),
  mount_sources: fc.dictionary(name, text),
};

/** Values by the kind alone. */
const OF_KIND: Readonly<Record<Field['kind'], (row: Field) => fc.Arbitrary<unknown>>> = {
  string: () => text,
  path: () => text,
  'json-file': () => text,
  choice: ({ choices = [] }) => fc.constantFrom(...choices),
  int: ({ min, max }) =>
    fc.integer({ ...(min === undefined ? {} : { min }), ...(max === undefined ? {} : { max }) }),
  float: () => fc.constantFrom(0, 0.5, 1),
  bool: () => fc.boolean(),
  duration: () => duration,
  strings: () => texts,
  list: () => texts,
  pairs: () => fc.dictionary(name, text),
  json: () => fc.jsonValue(),
};

const valueOf = (row: Field & { readonly key: string }): fc.Arbitrary<unknown> =>
  OWN[row.key] ?? OF_KIND[row.kind](row);

const document = fc
  .record(Object.fromEntries(storedRows(rows).map((row) => [row.key, valueOf(row)])), {
    requiredKeys: ['name', 'image', 'transport'],
  })
  .map((flat) => {
    const nested: Record<string, Record<string, unknown>> = {};
    const whole = Object.entries(flat).filter(([key, value]) => {
      const [parent = '', child] = key.split('.');
      if (child !== undefined) nested[parent] = { ...nested[parent], [child]: value };
      return child === undefined;
    });
    return { ...Object.fromEntries(whole), ...nested };
  });

test('the arbitraries of this test name rows that there are', () => {
  const own = storedRows(rows).filter((row) => row.stored !== undefined);
  expect(new Set(Object.keys(OWN))).toEqual(new Set(own.map((row) => row.key)));
});

test('a configuration of any of the rows comes back from its text, with what no row knows', () => {
  const unknown = fc.dictionary(fc.stringMatching(/^x_[a-z]{1,5}$/), fc.jsonValue());
  fc.assert(
    fc.property(document, unknown, (members, rest) => {
      const config = decodeRunConfig({ ...rest, ...members }, 'f');
      expect(config).toMatchObject({ rest });
      const again = decodeRunConfig(JSON.parse(encodeRunConfig(config)), 'f');
      expect(again).toEqual(JSON.parse(JSON.stringify(config)));
    }),
  );
});

describe('the summary of a saved configuration', () => {
  /** As the file of it is read. */
  const saved = (value: unknown): unknown => JSON.parse(encodeRunConfig(decodeRunConfig(value, 'f')));

  test('says of each member what the whole says', () => {
    fc.assert(
      fc.property(document, (members) => {
        const whole = decodeRunConfig(saved(members), 'f');
        const summary = summaryOf(saved(members), whole.name);
        expect(whole).toMatchObject(summary ?? {});
      }),
    );
  });

  test.each(STORED)('is had of what this release saves: $config.name', ({ text: stored, config }) => {
    const name = 'name' in config ? String(config.name) : '';
    const summary = summaryOf(saved(JSON.parse(stored)), name);
    expect(Object.keys(summary ?? {})).toEqual(
      expect.arrayContaining(['name', 'image', 'transport', 'proxy_mode', 'host', 'port', 'group']),
    );
    expect(config).toMatchObject(summary ?? {});
  });

  test.each([
    { name: 'other' },
    { schema_version: 'v1.0.0' },
    { schema_version: undefined },
    { image: '' },
    { package: { kind: 'package', ecosystem: 'npm', name: 'x', more: 1 } },
    { package: { kind: 'package', ecosystem: 'cargo', name: 'x' } },
    { transport: 'smoke' },
    { transport: 'sse' },
    { proxy_mode: '' },
    { host: 'example.org' },
    { port: 65_536 },
    { group: 'A' },
    { group: undefined },
    { container_labels: { team: 1 } },
  ])('is not had of %j, which is judged whole', (odd) => {
    const usual = saved({ name: 'notes', image: 'x/y:1', transport: 'stdio', port: 4001 }) as object;
    expect(summaryOf(usual, 'notes')).toMatchObject({ name: 'notes', port: 4001 });
    expect(summaryOf({ ...usual, ...odd }, 'notes')).toBeUndefined();
  });
});

/** What one writes for a setting, and what it then is. */
const SAMPLES: Readonly<Record<Field['kind'], FieldValue>> = {
  string: 'x',
  path: './x',
  'json-file': './x.json',
  choice: '',
  int: 2_000,
  float: 0.5,
  bool: true,
  duration: 90_000,
  strings: ['a', 'b'],
  list: ['a'],
  pairs: { a: '1' },
  json: {},
};

describe('a row of signing in to a server elsewhere', () => {
  const own = rows.filter(({ key, flag }) => key?.startsWith('remote_auth_config.') && flag !== undefined);
  test.each(own.map((row) => [row.key ?? '', row] as const))(
    '%s goes from its flag to the stored file and back by its row alone',
    (key, row) => {
      const table = [row];
      const value = row.kind === 'bool' ? row.default !== true : (row.choices?.at(-1) ?? SAMPLES[row.kind]);
      const { settings } = fromArgv({ rows: table }, [`--${row.flag ?? ''}=${showValue(row, value)}`]);
      const stored = toDocument(table, valuesOf(table, settings));
      const read = storedShape(table)(JSON.parse(JSON.stringify(stored)), (why) => expect.fail(why));
      expect(read).toEqual(stored);
      const [parent = '', child] = key.split('.');
      const there: unknown = stored[parent];
      expect(child === undefined ? there : (there as Record<string, unknown>)[child]).toEqual(
        toStored(row, value),
      );
    },
  );
});
