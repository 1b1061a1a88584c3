import { expect, test } from 'vitest';
import { withSteps } from './import-steps.ts';

const parameters = { filter_tools: ['look'], tools_override: { read: { name: 'look' } } };
const keys = { tools_filter: ['look'], tools_override: { read: { name: 'look' } } };
const list = { type: 'tool-filter', parameters };
const call = { type: 'tool-call-filter', parameters };
const audit = (said?: object) => ({ type: 'audit', parameters: said });
const other = { type: 'upstreamswap', parameters: { config: {} } };
const policies = { version: '1.0', type: 'cedarv1', cedar: { policies: ['x'] } };
const authorization = { type: 'authorization', parameters: { config_data: policies, config_path: '/x' } };

test.each<[string, object, object]>([
  ['no steps', { name: 'x' }, { name: 'x' }],
  ['no list', { middleware_configs: 3 }, { middleware_configs: 3 }],
  ['a step alone', { middleware_configs: [list] }, { ...keys, middleware_configs: [] }],
  [
    'a step among others',
    { middleware_configs: [other, list, call] },
    { ...keys, middleware_configs: [other] },
  ],
  [
    'a step that says what the keys say',
    { ...keys, middleware_configs: [list, call] },
    { ...keys, middleware_configs: [] },
  ],
  [
    'a step that authorizes',
    { middleware_configs: [authorization] },
    { authz_config: policies, authz_config_path: '/x', middleware_configs: [] },
  ],
  [
    'a step that forwards headers',
    { middleware_configs: [{ type: 'header-forward', parameters: { add_headers: { A: 'b' } } }] },
    { header_forward: { add_plaintext_headers: { A: 'b' } }, middleware_configs: [] },
  ],
  [
    'a step that forwards headers beside those of secrets',
    {
      header_forward: { add_headers_from_secret: { C: 'd' } },
      middleware_configs: [{ type: 'header-forward', parameters: { add_headers: { A: 'b' } } }],
    },
    {
      header_forward: { add_headers_from_secret: { C: 'd' }, add_plaintext_headers: { A: 'b' } },
      middleware_configs: [],
    },
  ],
  [
    'a step that forwards other headers',
    {
      header_forward: { add_plaintext_headers: { A: 'c' } },
      middleware_configs: [{ type: 'header-forward', parameters: { add_headers: { A: 'b' } } }],
    },
    {
      header_forward: { add_plaintext_headers: { A: 'c' } },
      middleware_configs: [{ type: 'header-forward', parameters: { add_headers: { A: 'b' } } }],
    },
  ],
  ['a step of nothing', { middleware_configs: [{ type: 'tool-filter' }] }, { middleware_configs: [] }],
  [
    'a step of empty parameters',
    { middleware_configs: [{ type: 'tool-filter', parameters: { filter_tools: null, tools_override: {} } }] },
    { middleware_configs: [] },
  ],
  [
    'a step of telemetry',
    {
      middleware_configs: [
        {
          type: 'telemetry',
          parameters: { config: { endpoint: 'x' }, server_name: 'a1', transport: 'stdio' },
        },
      ],
    },
    { telemetry_config: { endpoint: 'x' }, middleware_configs: [] },
  ],
  [
    'a step that switches something on',
    { middleware_configs: [audit()] },
    { audit_config: {}, middleware_configs: [] },
  ],
  [
    'a step that switches on what is configured',
    { audit_config: { component: 'x' }, middleware_configs: [audit()] },
    { audit_config: { component: 'x' }, middleware_configs: [] },
  ],
  [
    'a step with facts of its workload',
    {
      middleware_configs: [
        audit({ config_data: { maxDataSize: 1 }, component: 'a1', transport_type: 'sse' }),
      ],
    },
    { audit_config: { maxDataSize: 1 }, middleware_configs: [] },
  ],
])('%s becomes what its keys would say', (_name, document, expected) => {
  expect(withSteps({ ...document })).toEqual(expected);
});

test.each<[string, object]>([
  ['contradicts a key', { ...keys, tools_filter: ['x'], middleware_configs: [list] }],
  ['says more', { middleware_configs: [{ ...list, when: 'x' }] }],
  [
    'has a parameter that nobody knows',
    { middleware_configs: [{ type: 'tool-filter', parameters: { x: 1 } }] },
  ],
  ['has parameters of no shape', { middleware_configs: [{ type: 'tool-filter', parameters: 'x' }] }],
  ['guards nothing', { middleware_configs: [{ type: 'authorization' }] }],
  [
    'guards nothing in many words',
    { middleware_configs: [{ type: 'authorization', parameters: { config_data: {} } }] },
  ],
  ['guards otherwise', { authz_config: { version: '1.0' }, middleware_configs: [authorization] }],
  [
    'guards by a file beside what the keys hold',
    {
      authz_config: policies,
      middleware_configs: [{ type: 'authorization', parameters: { config_path: '/x' } }],
    },
  ],
  [
    'limits elsewhere than the keys say',
    {
      rate_limit_config: { a: 1 },
      middleware_configs: [{ type: 'ratelimit', parameters: { namespace: 'x' } }],
    },
  ],
  ['is none', { middleware_configs: ['tool-filter', null] }],
])('a step that %s stays, to be refused', (_name, document) => {
  expect(withSteps({ ...document })).toEqual(document);
});

test('a second step that guards otherwise stays, to be refused', () => {
  const second = { type: 'authorization', parameters: { config_path: '/x' } };
  const first = { type: 'authorization', parameters: { config_data: policies } };
  expect(withSteps({ middleware_configs: [first, second] })).toEqual({
    authz_config: policies,
    middleware_configs: [second],
  });
});
