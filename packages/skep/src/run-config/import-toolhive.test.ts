import { storedRows } from '@skep/core/settings/stored.ts';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runSettings } from '../settings/run-settings.ts';
import { decodeRunConfig } from './run-config.ts';
import { checkKeys, fromToolhive } from './import-toolhive.ts';

const minimal = { name: 'everything', image: 'mcp/everything:1', transport: 'stdio' };
const read = (more: object) => fromToolhive({ ...minimal, ...more }, 'f');
const notThere = expect.objectContaining({ code: 'usage/not-available' });
const invalid = expect.objectContaining({ code: 'run/invalid-config' });

/** Every guard that ToolHive writes, with the way its value looks when it asks for something. */
const GUARDS: Readonly<Record<string, unknown>> = {
  remote_auth_config: { issuer: 'https://idp.example' },
  secrets: ['github,target=TOKEN'],
  isolate_network: true,
  endpoint_prefix: '/x',
  env_file_dir: '/vault/secrets',
  tools_filter: ['read'],
  tools_override: { read: { name: 'look' } },
  header_forward: { add_plaintext_headers: { A: 'b' } },
  jwks_auth_token_file: '/token',
  oidc_config: { issuer: 'https://idp.example' },
  token_exchange_config: { token_url: 'https://idp.example/token' },
  upstream_swap_config: { header_strategy: 'replace' },
  aws_sts_config: { region: 'eu-west-1' },
  authz_config: { version: '1.0', type: 'cedarv1', cedar: { policies: [] } },
  authz_config_path: '/authz.json',
  audit_config_path: '/audit.json',
  validating_webhooks: [{ name: 'p', url: 'https://hook.example' }],
  mutating_webhooks: [{ name: 'p', url: 'https://hook.example' }],
  embedded_auth_server_config: { issuer: 'https://idp.example' },
  rate_limit_config: { shared: { maxTokens: 1 } },
};

/** Keys that this release acts on; which flags these have, `settings/run-settings.test.ts` says. */
const delivered = new Set(storedRows(runSettings).flatMap(({ key }) => key.split('.', 1)));
const waiting = Object.entries(GUARDS).filter(([key]) => !delivered.has(key));

describe('a guard that is not there yet', () => {
  test.each(waiting)('never lets a file that asks for it run without: %s', (key, value) => {
    expect(() => read({ [key]: value })).toThrow(notThere);
    expect(() => read({ [key]: value })).toThrow(`"${key}"`);
  });
  test.each(['upstream_swap_config'])('is asked for by an empty %s', (key) =>
    expect(() => read({ [key]: {} })).toThrow(notThere),
  );
  test('is not asked for by null, false, and empty texts and lists', () => {
    const nothing = { isolate_network: false, secrets: [], authz_config: null, endpoint_prefix: '' };
    expect(read(nothing).warnings).toEqual([]);
  });
  test('hides in no list of steps', () => {
    const step = (type: string, parameters?: unknown) => ({ type, parameters });
    for (const one of [
      step('authorization'),
      step('tool-call-filter', { filter_tools: ['read'], when: 'x' }),
      step('origin', { allowed_origins: ['https://app.example'] }),
      step('bodylimit', { max_bytes: 10 }),
      step('strip-auth', {}),
      step('constructor', {}),
      step('something-new'),
      { type: 'auth', parameters: {}, when: 'always' },
      'auth',
      null,
    ]) {
      expect(() => read({ middleware_configs: [step('mcp-parser', {}), one] })).toThrow(notThere);
      expect(() => read({ additional_middleware_configs: [one] })).toThrow(notThere);
    }
    expect(() => read({ middleware_configs: { type: 'authorization' } })).toThrow(notThere);
    const two = [step('upstreamswap', { config: {} }), step('recovery'), step('authorization')];
    expect(() => read({ middleware_configs: two })).toThrow(
      '"middleware_configs" (upstreamswap, authorization)',
    );
  });
  test('is no step that every request passes here anyway', () => {
    const steps = [
      { type: 'auth', parameters: { oidc_config: null } },
      { type: 'mcp-parser', parameters: {} },
      { type: 'recovery' },
      { type: 'origin', parameters: { allowed_origins: [] } },
      { type: 'bodylimit', parameters: { max_bytes: 8_388_608 } },
    ];
    expect(read({ middleware_configs: steps }).warnings).toEqual([]);
  });
  test('keeps a workload from starting that an earlier release imported without it', () => {
    expect(() => checkKeys({ middleware_configs: [{ type: 'authorization' }] }, 'f')).toThrow(notThere);
    expect(() => checkKeys({ telemetry_config: { endpoint: 'x' } }, 'f')).not.toThrow();
  });
  test('is named together with all others', () => {
    const both = { upstream_swap_config: { x: 1 }, aws_sts_config: {} };
    expect(() => read(both)).toThrow('"upstream_swap_config", "aws_sts_config"');
  });
});

describe('a key that no release knows', () => {
  test.each([
    [{ evil: 1 }, '"evil"'],
    [{ evil: null }, '"evil"'],
    [{ authz_conifg: {} }, '"authz_conifg"'],
    [{ runtime_config: { sandbox: 'off' } }, '"runtime_config.sandbox"'],
    [{ ignore_config: { LoadLocal: true } }, '"ignore_config.load_local"'],
    [JSON.parse('{"__proto__":{"authz_config":{}}}') as object, '"__proto__"'],
    [{ constructor: 1 }, '"constructor"'],
  ])('is an error that names it: %j', (more, named) => {
    const own = Object.fromEntries([...Object.entries(minimal), ...Object.entries(more)]) as object;
    expect(() => fromToolhive(own, 'f')).toThrow(invalid);
    expect(() => fromToolhive(own, 'f')).toThrow(named);
  });
  test('is met with the key that was meant', () => {
    expect(() => read({ authz_conifg: {} })).toThrow(
      expect.objectContaining({ hint: expect.stringContaining('authz_config') }),
    );
  });
});

describe('a key without effect', () => {
  test.each([
    ['rate_limit_namespace', 'x'],
    ['mcpserver_generation', 2],
  ])('is kept and said: %s', (key, value) => {
    const { value: document, warnings } = read({ [key]: value });
    expect(warnings).toEqual([`kept, but without effect yet: ${key}`]);
    expect(decodeRunConfig(document, 'f').rest).toEqual({ [key]: value });
  });
  test('is said under the name that Skep has for it', () => {
    expect(read({ thv_ca_bundle: '/ca.pem' })).toEqual({
      value: { ...minimal, skep_ca_bundle: '/ca.pem' },
      warnings: [],
    });
  });
  test.each([
    { PATH: '/x' },
    { LD_PRELOAD: '/x' },
    { x: 'y' },
    { 'X Y': '' },
    { X: 'a"b' },
    { X: '$(id)' },
    { X: 'a\nRUN id' },
    { X: 3 },
  ])('is refused where a variable of a package is none: %j', (runtime_env) => {
    const { value } = read({ runtime_config: { runtime_env } });
    expect(() => decodeRunConfig(value, 'f')).toThrow(invalid);
  });
});

describe('labels of a file', () => {
  test('are kept, but for those that state facts about another workload', () => {
    const container_labels = { toolhive: 'true', 'toolhive-port': '1', 'skep.managed': 'true', mine: 'x' };
    const { value, warnings } = read({ container_labels });
    expect(decodeRunConfig(value, 'f').container_labels).toEqual({ mine: 'x' });
    expect(warnings).toEqual([]);
  });
  test('that are reserved and no known fact are said to be left out', () => {
    const { value, warnings } = read({ container_labels: { 'skep.evil': '1', 'toolhive-tool-type': 'mcp' } });
    expect(decodeRunConfig(value, 'f').container_labels).toEqual({});
    expect(warnings).toEqual(['labels of another tool were left out: skep.evil, toolhive-tool-type']);
  });
  test.each(['a b', '', '-x', 'a/b/c', 'A/b', `x${'y'.repeat(70)}`, 'a\u001B[31m'])(
    'must be labels: %j',
    (key) => expect(() => read({ container_labels: { [key]: '1' } })).toThrow(invalid),
  );
});

/** Every key that ToolHive's format has, by its published description. */
const FORMAT = `
  permission_profile additional_middleware_configs allow_docker_gateway allowed_origins audit_config audit_config_path
  authz_config authz_config_path aws_sts_config base_name cmd_args container_labels container_name
  debug embedded_auth_server_config endpoint_prefix env_file_dir env_vars group header_forward host
  ignore_config image isolate_network jwks_auth_token_file k8s_pod_template_patch mcpserver_generation
  middleware_configs mutating_webhooks name oidc_config permission_profile_name_or_path port
  proxy_mode publish rate_limit_config rate_limit_namespace registry_api_url registry_server_name
  registry_url remote_auth_config remote_url runtime_config scaling_config schema_version secrets
  session_ttl stateless strict_protocol_validation target_host target_port telemetry_config
  thv_ca_bundle token_exchange_config tools_filter tools_override transport trust_proxy_headers
  upstream_swap_config validating_webhooks volumes
`;

test.each(FORMAT.trim().split(/\s+/))('%s of the format has a rule', (key) => {
  const { value } = fromToolhive({ ...minimal, [key]: null }, 'f');
  expect(value).toHaveProperty('name');
});

test('any JSON is taken or refused with a code', () => {
  const keys = fc.constantFrom(...FORMAT.trim().split(/\s+/), 'evil');
  const document = fc.dictionary(keys, fc.jsonValue());
  fc.assert(
    fc.property(fc.oneof(fc.jsonValue(), document), (value) => {
      try {
        decodeRunConfig(fromToolhive(value, 'f').value, 'f');
      } catch (error) {
        expect(error).toHaveProperty(
          'code',
          expect.stringMatching(/^(?:run\/invalid-config|usage\/not-available)$/),
        );
      }
    }),
  );
});
