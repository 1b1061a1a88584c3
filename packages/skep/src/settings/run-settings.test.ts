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
const ownFlags = ['build-with', 'check-timeout', 'cpus', 'disk', 'explain', 'learn', 'learn-file', 'memory', 'no-check', 'pids-limit', 'read-only', 'rebuild', 'runtime', 'sandbox-user', 'trust-config']; // prettier-ignore

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

test('every flag of a later release is refused by name', () => {
  const refused = flagRows.filter((row) => row.notYet === true);
  expect(refused.length).toBeGreaterThan(0);
  for (const row of refused) {
    const argv = [`--${row.flag ?? ''}=x`, 'server'];
    expect(() => fromArgv({ rows, positionals: [{ name: 'SERVER' }] }, argv)).toThrow(
      expect.objectContaining({
        code: 'usage/not-available',
        message: `the flag "--${row.flag ?? ''}" is not available yet`,
      }),
    );
  }
});

describe('a flag of a later release whose value is what happens anyway', () => {
  const later = flagRows.filter((row) => row.notYet === true);
  const given = (row: Field, value: string) => fromArgv({ rows }, [`--${row.flag ?? ''}=${value}`]).settings;

  test.each(later.filter((row) => row.default !== undefined).map((row) => [row.flag ?? '', row] as const))(
    '--%s is accepted with its default',
    (_flag, row) => {
      const value = showValue(row, row.default ?? '');
      expect(given(row, value).get(row.name)).toEqual({ value: row.default, origin: 'flag' });
    },
  );
  test.each(later.filter((row) => row.kind === 'bool').map((row) => [row.flag ?? '', row] as const))(
    '--%s=false is accepted',
    (_flag, row) => expect(given(row, 'false').get(row.name)?.value).toBe(false),
  );
  test.each(
    later
      .filter((row) => /^(?:string|path|json-file|strings)$/.test(row.kind))
      .map((row) => [row.flag ?? '', row] as const),
  )('--%s is accepted empty, as scripts write what they have no value for', (_flag, row) => {
    expect(given(row, '').has(row.name)).toBe(true);
  });
  test.each(later.map((row) => [row.flag ?? '', row] as const))(
    '--%s is refused with any other value, alone and after an accepted one',
    (_flag, row) => {
      const other = row.kind === 'bool' ? (row.default === true ? 'x' : 'true') : '7';
      const both = row.kind === 'bool' ? [`--${row.flag ?? ''}=false`] : [];
      expect(() => fromArgv({ rows }, [...both, `--${row.flag ?? ''}=${other}`])).toThrow(
        expect.objectContaining({ code: 'usage/not-available' }),
      );
    },
  );
  test('still counts as given beside --from-config', () => {
    expect([...fromArgv({ rows }, ['--enable-audit=false']).settings.keys()]).toEqual(['enableAudit']);
  });
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
        'remote-forward-headers',
        'remote-forward-headers-secret',
        'resource-url',
        'runtime',
        'runtime-add-package',
        'runtime-image',
        'sandbox-user',
        'secret',
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
