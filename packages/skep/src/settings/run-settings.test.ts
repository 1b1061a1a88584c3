import { valuesOf } from '@skep/core/settings/define-settings.ts';
import type { Field, FieldKind } from '@skep/core/settings/field.ts';
import { fromArgv } from '@skep/core/settings/from-argv.ts';
import { mergeSettings } from '@skep/core/settings/merge.ts';
import { showValue } from '@skep/core/settings/show-value.ts';
import { describe, expect, expectTypeOf, test } from 'vitest';
import { contractFlags, type ContractType } from './contract-flags.fixture.ts';
import { runSettings, type RunValues } from './run-settings.ts';

const rows: readonly Field[] = runSettings;
const flagRows = rows.filter((row) => row.flag !== undefined);

/** Flags of Skep alone (decision 0146). */
const ownFlags = ['build-with', 'check-timeout', 'cpus', 'disk', 'explain', 'learn', 'learn-file', 'memory', 'no-check', 'pids-limit', 'read-only', 'rebuild', 'remote-auth-client-credentials', 'runtime', 'sandbox-user', 'session-redis', 'session-redis-key-prefix', 'session-redis-password-file', 'trust-config']; // prettier-ignore

/** Which kinds may stand for a type of the fixture. */
const kindsOf: Record<ContractType, readonly FieldKind[]> = {
  string: ['string', 'choice', 'path', 'json-file'],
  int: ['int'],
  float: ['float'],
  bool: ['bool'],
  duration: ['duration'],
  stringArray: ['list', 'pairs', 'strings'],
  strings: ['strings'],
};

test('the table has exactly the flags of the fixture and those of Skep alone', () => {
  const all = [...contractFlags.map(({ flag }) => flag), ...ownFlags];
  expect(new Set(flagRows.map((row) => row.flag))).toEqual(new Set(all));
});

test.each(contractFlags)('--$flag is a $type as the fixture says', (contract) => {
  const row = rows.find(({ flag }) => flag === contract.flag);
  expect(kindsOf[contract.type]).toContain(row?.kind);
  expect(row?.short).toBe(contract.short);
  expect(row?.default === undefined ? undefined : showValue(row, row.default)).toBe(contract.default);
});

test.each(rows.map((row) => [row.name, row] as const))('%s is documented in one line', (_name, row) => {
  expect(row.brief).toMatch(/^[A-Z/].*[^.]$/u);
  expect(row.brief.length).toBeLessThanOrEqual(80);
  expect(row.kind === 'choice' ? row.choices?.length : 2).toBeGreaterThan(1);
});

test('no flag waits for a later release', () => {
  expect(flagRows.filter((row) => row.notYet === true)).toEqual([]);
});

test('a flag that says what happens anyway counts as given', () => {
  expect([...fromArgv({ rows }, ['--enable-audit=false']).settings.keys()]).toEqual(['enableAudit']);
});

describe('what this release delivers', () => {
  test('is exactly this', () => {
    const delivered = flagRows.filter((row) => row.notYet !== true);
    expect(new Set(delivered.map((row) => row.flag))).toEqual(
      new Set([
        'allow-runtime-gateway',
        'authz-config',
        'audit-config',
        'build-with',
        'ca-cert',
        'check-timeout',
        'cpus',
        'debug',
        'disk',
        'enable-audit',
        'env',
        'env-file',
        'endpoint-prefix',
        'env-file-dir',
        'explain',
        'foreground',
        'from-config',
        'group',
        'help',
        'host',
        'jwks-allow-private-ip',
        'jwks-auth-token-file',
        'ignore-globally',
        'isolate-network',
        'image-verification',
        'label',
        'learn',
        'learn-file',
        'memory',
        'name',
        'network',
        'no-check',
        'oidc-audience',
        'oidc-client-id',
        'oidc-client-secret',
        'oidc-insecure-allow-http',
        'oidc-introspection-url',
        'oidc-issuer',
        'oidc-jwks-url',
        'oidc-scopes',
        'otel-custom-attributes',
        'otel-enable-prometheus-metrics-path',
        'otel-endpoint',
        'otel-env-vars',
        'otel-headers',
        'otel-insecure',
        'otel-metrics-enabled',
        'otel-sampling-rate',
        'otel-service-name',
        'otel-tracing-enabled',
        'otel-use-legacy-attributes',
        'permission-profile',
        'pids-limit',
        'proxy-mode',
        'proxy-port',
        'print-resolved-overlays',
        'publish',
        'read-only',
        'rebuild',
        'remote-auth',
        'remote-auth-authorize-url',
        'remote-auth-bearer-token',
        'remote-auth-bearer-token-file',
        'remote-auth-callback-port',
        'remote-auth-client-credentials',
        'remote-auth-client-id',
        'remote-auth-client-secret',
        'remote-auth-client-secret-file',
        'remote-auth-issuer',
        'remote-auth-resource',
        'remote-auth-scopes',
        'remote-auth-skip-browser',
        'remote-auth-timeout',
        'remote-auth-token-url',
        'remote-forward-headers',
        'remote-forward-headers-secret',
        'resource-url',
        'runtime',
        'runtime-add-package',
        'runtime-image',
        'sandbox-user',
        'secret',
        'session-redis',
        'session-redis-key-prefix',
        'session-redis-password-file',
        'skep-ca-bundle',
        'target-host',
        'target-port',
        'token-exchange-audience',
        'token-exchange-client-id',
        'token-exchange-client-secret',
        'token-exchange-client-secret-file',
        'token-exchange-header-name',
        'token-exchange-scopes',
        'token-exchange-subject-token-type',
        'token-exchange-url',
        'tools',
        'tools-override',
        'transport',
        'trust-config',
        'trust-proxy-headers',
        'volume',
        'webhook-config',
      ]),
    );
  });

  test('is read into typed values', () => {
    const argv =
      '--name x -e A=1 -p 80:90 --proxy-port 4001 -v /a:/b:ro -f --transport stdio srv -- --x'.split(' ');
    const read = fromArgv({ rows: runSettings, positionals: [{ name: 'SERVER' }], rest: true }, argv);
    const values: RunValues = valuesOf(runSettings, mergeSettings(runSettings, [read.settings]));
    expectTypeOf(values.proxyPort).toEqualTypeOf<number | undefined>();
    expectTypeOf(values.transport).toEqualTypeOf<'stdio' | 'streamable-http' | 'sse' | undefined>();
    expect(values).toMatchObject({
      name: 'x',
      env: ['A=1'],
      publish: ['80:90'],
      proxyPort: 4001,
      volume: ['/a:/b:ro'],
      foreground: true,
      transport: 'stdio',
      host: '127.0.0.1',
      group: 'default',
      imageVerification: 'warn',
    });
    expect(read.rest).toEqual(['--x']);
  });
});
