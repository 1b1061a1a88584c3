import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { commandUnderTest, NOTHING_LEFT } from '../command-under-test.fixture.ts';
import { MemoryKeyring } from '../secrets/keyring/keyring.fixture.ts';

const RUN = 'run fake:1 --name a1 --transport stdio';
const BASE = { name: 'a1', image: 'fake:1', transport: 'stdio' };
const hook = (more: object = {}): object => ({
  name: 'policy',
  url: 'https://hook.example/ask',
  failure_policy: 'fail',
  ...more,
});
const one = (more: object): object => ({ validating: [hook(more)] });
const FILES = {
  'good.yaml': [
    'validating:',
    '  - name: policy',
    '    url: https://policy.example/validate',
    '    failure_policy: fail',
    '    timeout: 5s',
    'mutating:',
    '  - name: enricher',
    '    url: http://127.0.0.1:1/mutate',
    '    failure_policy: ignore',
    '    hmac_secret_ref: signing',
    '    tls_config:',
    '      insecure_skip_verify: true',
    '',
  ].join('\n'),
  'second.json': { validating: [hook({ name: 'other' }), hook({ timeout: 2_000_000_000 })], mutating: null },
  'twice.json': { validating: [hook(), hook({ name: 'x' }), hook()] },
  'nameless.json': one({ name: undefined }),
  'plain.json': one({ url: 'http://hook.example' }),
  'nowhere.json': one({ url: 'hook.example' }),
  'login.json': one({ url: 'https://a:b@hook.example' }),
  'policy.json': one({ failure_policy: undefined }),
  'hasty.json': one({ timeout: '500ms' }),
  'slow.json': one({ timeout: '31s' }),
  'soon.json': one({ timeout: 'soon' }),
  'half.json': one({ tls_config: { client_cert_path: 'c.pem' } }),
  'absent.json': one({ tls_config: { ca_bundle_path: 'ca.pem' } }),
  'file.json': one({ hmac_secret_ref: '/nowhere/key' }),
  'system.json': one({ hmac_secret_ref: '__skep_workloads_x/y' }),
  'extra.json': one({ retries: 3 }),
  'kind.json': { warning: [] },
  'broken.json': '{"validating":',
};

describe('webhooks of a run', () => {
  test.each([
    ['', '--webhook-config is empty'],
    ['none.json', 'webhook configuration "WORK/none.json" does not exist'],
    ['twice.json', 'webhook configuration "WORK/twice.json": line 1: "validating.2.name" "policy" is there twice'],
    ['nameless.json', '"validating.0.name" is missing'],
    ['plain.json', '"validating.0.url" is plain HTTP, which needs "insecure_skip_verify": true'],
    ['nowhere.json', '"validating.0.url" is no https URL'],
    ['login.json', '"validating.0.url" holds a login'],
    ['policy.json', '"validating.0.failure_policy" is missing'],
    ['hasty.json', '"validating.0.timeout" is not a duration from 1s to 30s'],
    ['slow.json', '"validating.0.timeout" is not a duration from 1s to 30s'],
    ['soon.json', '"validating.0.timeout" is not a duration from 1s to 30s'],
    ['half.json', 'needs both client_cert_path and client_key_path, or neither'],
    ['absent.json', 'CA bundle "WORK/ca.pem" does not exist'],
    ['file.json', 'HMAC secret "/nowhere/key" does not exist'],
    ['system.json', 'is reserved for system use'],
    ['extra.json', 'has an unknown key: "retries"'],
    ['kind.json', 'has an unknown key: "warning"'],
    ['broken.json', 'is not valid JSON'],
  ])('are refused as %s, and nothing is made', async (file, message) => {
    const skep = await commandUnderTest({ files: FILES });
    expect(await skep.refusal(`${RUN} --webhook-config=${file}`)).toContain(message);
    expect(await skep.left()).toEqual(NOTHING_LEFT);
  }); // prettier-ignore

  const SIGNED = [
    {
      name: 'enricher',
      url: 'http://127.0.0.1:1/mutate',
      failure_policy: 'ignore',
      hmac_secret_ref: 'signing',
      tls_config: { insecure_skip_verify: true },
    },
  ];
  const withKeyring = () =>
    commandUnderTest({
      files: { ...FILES, 'a.json': { ...BASE, mutating_webhooks: SIGNED } },
      keyrings: [new MemoryKeyring({ maxChars: 1_000_000 })],
      env: { SKEP_SECRETS_PROVIDER: 'keyring' },
    });

  test('are merged by name and saved, and signed with a secret that the server never gets', async () => {
    const skep = await withKeyring();
    const run = `${RUN} --webhook-config good.yaml --webhook-config second.json`;
    expect(await skep.refusal(run)).toContain('secret not found: "signing"');
    expect(await skep.left()).toEqual(NOTHING_LEFT);
    await skep.output('secret set signing', { input: 'hush-hush' });
    await skep.output(run);
    const text = await readFile(join(skep.places.runConfigsDir, 'a1.json'), 'utf8');
    expect(JSON.parse(text)).toMatchObject({
      validating_webhooks: [hook({ timeout: 2_000_000_000 }), hook({ name: 'other' })],
      mutating_webhooks: SIGNED,
    });
    expect(text).not.toContain('hush-hush');
    const given = { ...skep.runtime.environments.get('a1'), ...skep.runtime.specOf('a1')?.env };
    expect(JSON.stringify(given)).not.toContain('hush-hush');
  });

  test('of a file are granted by the person, exported as they were, and need their secret', async () => {
    const skep = await withKeyring();
    await skep.output('secret set signing', { input: 'hush-hush' });
    const refusal = await skep.refusal('run --from-config a.json');
    expect(refusal).toContain(
      'ask "http://127.0.0.1:1/mutate" about every call of its clients: show and let it change all that they say',
    );
    expect(refusal).toContain('sign what it asks "http://127.0.0.1:1/mutate" with "signing"');
    await skep.output('run --from-config a.json --trust-config');
    await skep.output('export a1 out.json');
    expect(JSON.parse(await readFile(join(skep.cwd, 'out.json'), 'utf8'))).toMatchObject({
      mutating_webhooks: SIGNED,
    });
    await skep.output('stop a1');
    await skep.output('secret delete signing');
    expect(await skep.refusal('start a1')).toContain('secret not found: "signing"');
  });

  test('are taken from the steps of an imported file', async () => {
    const steps = [
      {
        type: 'validating-webhook',
        parameters: { webhooks: [hook({ timeout: 5_000_000_000 })], server_name: 'a1', transport: 'stdio' },
      },
    ];
    const skep = await commandUnderTest({
      files: {
        'a.json': { ...BASE, middleware_configs: steps },
        'b.json': { ...BASE, mutating_webhooks: [hook({ failure_policy: 'maybe' })] },
      },
    });
    expect(await skep.refusal('run --from-config b.json')).toContain(
      '"mutating_webhooks.0.failure_policy": must be one of fail, ignore',
    );
    await skep.output('run --from-config a.json --trust-config');
    const saved: unknown = JSON.parse(await readFile(join(skep.places.runConfigsDir, 'a1.json'), 'utf8'));
    expect(saved).toMatchObject({ validating_webhooks: [hook({ timeout: 5_000_000_000 })] });
  });
});
