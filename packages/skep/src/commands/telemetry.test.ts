import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { decodeRunConfig } from '../run-config/run-config.ts';
import { telemetryOf } from '../run-config/telemetry.ts';
import { MemoryKeyring } from '../secrets/keyring/keyring.fixture.ts';
import { commandUnderTest, NOTHING_LEFT, type CommandLine } from '../command-under-test.fixture.ts';

const RUN = 'run fake:1 --name a1 --transport stdio';
const IMPORTED = { name: 'a1', image: 'fake:1', transport: 'stdio' };
const FILES = {
  'there.json': {
    ...IMPORTED,
    telemetry_config: { endpoint: 'otel.example:4318', environmentVariables: ['REGION'], headers: null },
  },
  'idle.json': { ...IMPORTED, telemetry_config: { serviceName: 'n', samplingRate: '0.05', headers: null } },
  'wrong.json': { ...IMPORTED, telemetry_config: { samplingRate: '2' } },
  'secret.json': {
    ...IMPORTED,
    telemetry_config: { endpoint: 'x', environmentVariables: ['GITHUB_TOKEN'] },
  },
  'shown.json': { ...IMPORTED, telemetry_config: { endpoint: 'x', headers: { 'X-Key': 'hunter2' } } },
  'ca.json': { ...IMPORTED, telemetry_config: { endpoint: 'x', caCertPath: 'gone.pem' } },
};

const saved = async (file: string): Promise<Readonly<Record<string, unknown>>> =>
  JSON.parse(await readFile(file, 'utf8'));

describe('a run that is measured', () => {
  test.each<[string, CommandLine, string]>([
    ['a share of two', `${RUN} --otel-sampling-rate 2`, '2'],
    ['nothing to send', `${RUN} --otel-endpoint x --otel-tracing-enabled=false --otel-metrics-enabled=false`, 'an OTLP endpoint with neither traces nor metrics'],
    ['a login in its endpoint', `${RUN} --otel-endpoint https://a:b@x`, 'logins go into --otel-headers'],
    ['no address', `${RUN} --otel-endpoint a^b`, 'the OTLP endpoint is no address'],
    ['half an attribute', `${RUN} --otel-endpoint x --otel-custom-attributes a=b,c`, '--otel-custom-attributes: "c" is no pair'],
    ['a secret to show', `${RUN} --otel-endpoint x --otel-env-vars API_KEY`, '"API_KEY" looks like a secret'],
    ['no variable', `${RUN} --otel-endpoint x --otel-env-vars A-B`, '"A-B" is no name of a variable'],
    ['a wrong share, in a file', 'run --from-config wrong.json', '"telemetry_config.samplingRate": must be a number from 0 to 1'],
    ['a secret to show, in a file', 'run --from-config secret.json', '"GITHUB_TOKEN" looks like a secret'],
    ['no authorities, in a file', 'run --from-config ca.json', 'gone.pem'],
  ])('is refused with %s, and nothing is made', async (_name, line, message) => {
    const skep = await commandUnderTest({ files: FILES });
    expect(await skep.refusal(line)).toContain(message);
    expect(await skep.left()).toEqual(NOTHING_LEFT);
  }); // prettier-ignore

  test('keeps with its workload what was asked for, the values of the variables among it', async () => {
    const skep = await commandUnderTest({ env: { REGION: 'eu' } });
    const words =
      '--otel-endpoint http://otel.example:4318/ --otel-headers X-Key=hunter2 --otel-custom-attributes team=blue,tier=1 ' +
      '--otel-env-vars REGION,ABSENT --otel-sampling-rate 0.5 --otel-use-legacy-attributes=false';
    const { err } = await skep.run(`${RUN} ${words}`);
    expect(err).toContain('Warning: what is measured goes to the collector unencrypted, as its http:// says');
    expect(await saved(join(skep.places.runConfigsDir, 'a1.json'))).toMatchObject({
      telemetry_config: {
        endpoint: 'otel.example:4318/',
        insecure: true,
        customAttributes: { team: 'blue', tier: '1' },
        environmentVariables: ['REGION', 'ABSENT'],
        samplingRate: 0.5,
        useLegacyAttributes: false,
      },
      telemetry_environment: { REGION: 'eu' },
      env_vars: { SKEP_OTEL_HEADERS: '{"X-Key":"hunter2"}' },
      secret_env: ['SKEP_OTEL_HEADERS'],
    });
    await skep.output('export a1 out.json');
    const out = await readFile(join(skep.cwd, 'out.json'), 'utf8');
    expect(JSON.parse(out)).toMatchObject({
      telemetry_config: { endpoint: 'otel.example:4318/', samplingRate: 0.5 },
    });
    expect(out).not.toContain('hunter2');
    expect(out).not.toContain('telemetry_environment');
  });

  test('keeps what its collector is shown where secrets are, and shows nothing of it', async () => {
    const skep = await commandUnderTest({
      keyrings: [new MemoryKeyring({ maxChars: 1_000_000 })],
      env: { SKEP_SECRETS_PROVIDER: 'keyring' },
    });
    const { err } = await skep.run(`${RUN} --otel-endpoint x --otel-headers X-Key=hunter2 --debug`);
    const file = await readFile(join(skep.places.runConfigsDir, 'a1.json'), 'utf8');
    expect(JSON.parse(file)).toMatchObject({
      secrets: [expect.stringMatching(/,target=SKEP_OTEL_HEADERS$/u)],
    });
    const given = { ...skep.runtime.environments.get('a1'), ...skep.runtime.specOf('a1') };
    const shown = await skep.output('status a1');
    expect(`${err}${file}${shown}${JSON.stringify(given)}`).not.toMatch(/hunter2|Secrets:.*SKEP_OTEL/u);
    const config = decodeRunConfig(JSON.parse(file), 'a1');
    const told = await telemetryOf(config, '1', '{"X-Key":"hunter2"}');
    expect(told).toMatchObject({ headers: { 'X-Key': 'hunter2' } });
  });

  test('takes the headers of a file of others for a secret, too', async () => {
    const skep = await commandUnderTest({ files: FILES });
    await skep.output('run --from-config shown.json --trust-config');
    const config = await saved(join(skep.places.runConfigsDir, 'a1.json'));
    expect(config['telemetry_config']).not.toHaveProperty('headers');
    expect(config).toMatchObject({ secret_env: ['SKEP_OTEL_HEADERS'] });
  });

  test('does not start with headers that are none', async () => {
    const skep = await commandUnderTest();
    const refused = await skep.run([
      ...RUN.split(' '),
      '--otel-endpoint',
      'x',
      '-e',
      'SKEP_OTEL_HEADERS=X-Key=1',
    ]);
    expect(refused.err).toContain('the secret SKEP_OTEL_HEADERS is no JSON object of headers');
  });

  test('is as the configuration file says, where no flag does', async () => {
    const skep = await commandUnderTest();
    await skep.configure('otel:\n  endpoint: otel.example\n  sampling-rate: 0.9\n  insecure: true\n');
    await skep.output(`${RUN} --otel-sampling-rate 0.1`);
    expect((await saved(join(skep.places.runConfigsDir, 'a1.json')))['telemetry_config']).toEqual({
      endpoint: 'otel.example',
      insecure: true,
      samplingRate: 0.1,
    });
  });

  test('takes every key that the configuration file has for it', async () => {
    const skep = await commandUnderTest({ env: { REGION: 'eu' } });
    const keys = {
      endpoint: 'otel.example',
      'sampling-rate': 0.9,
      'env-vars': ['REGION'],
      insecure: true,
      'enable-prometheus-metrics-path': true,
      'tracing-enabled': false,
      'metrics-enabled': true,
      'use-legacy-attributes': false,
    };
    await skep.configure(JSON.stringify({ otel: keys }));
    await skep.output(RUN);
    expect(await saved(join(skep.places.runConfigsDir, 'a1.json'))).toMatchObject({
      telemetry_config: {
        endpoint: 'otel.example',
        samplingRate: 0.9,
        environmentVariables: ['REGION'],
        insecure: true,
        enablePrometheusMetricsPath: true,
        tracingEnabled: false,
        useLegacyAttributes: false,
      },
      telemetry_environment: { REGION: 'eu' },
    });
  });

  test('is not where nobody gets to see it, and that is told', async () => {
    const skep = await commandUnderTest({ files: FILES });
    const { err } = await skep.run(`${RUN} --otel-service-name n`);
    expect(err).toContain(
      'Warning: --otel-service-name has no effect without --otel-endpoint: nothing is measured',
    );
    expect(await saved(join(skep.places.runConfigsDir, 'a1.json'))).not.toHaveProperty('telemetry_config');
    await skep.output('rm a1');
    await skep.output('run --from-config idle.json');
    expect(await saved(join(skep.places.runConfigsDir, 'a1.json'))).not.toHaveProperty(
      'telemetry_environment',
    );
  });

  test('of a file of others tells nobody of it unasked', async () => {
    const skep = await commandUnderTest({ files: FILES, env: { REGION: 'eu' } });
    const refusal = await skep.refusal('run --from-config there.json');
    expect(refusal).toContain('tell https://otel.example:4318 which of its tools are called');
    expect(refusal).toContain('tell it what the variables REGION hold');
    await skep.output('run --from-config there.json --trust-config');
    expect(await saved(join(skep.places.runConfigsDir, 'a1.json'))).toMatchObject({
      telemetry_environment: { REGION: 'eu' },
    });
  });
});
