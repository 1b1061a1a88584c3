import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { withoutFacts } from './labels.ts';
import { fromToolhive } from './import-toolhive.ts';
import { decodeRunConfig, encodeExport, encodeRunConfig, type RunConfig } from './run-config.ts';
import { STORED } from './stored-format.fixture.ts';

const minimal = { name: 'everything', image: 'mcp/everything:1', transport: 'stdio' };
const full: RunConfig = decodeRunConfig(
  {
    ...minimal,
    port: 4001,
    env_vars: { A: '1', TOKEN: 'hush' },
    secret_env: ['TOKEN'],
    cmd_args: ['--x', 'a b'],
    volumes: ['/a:/b'],
    mount_sources: { '/a': '/real/a' },
    permission_profile: { write: ['/a:/b'], network: { mode: 'none' } },
    container_labels: { team: 'blue' },
    runtime_config: { builder_image: 'node:24', additional_packages: ['git'], build_with: ['x'] },
    registry_api_url: 'https://registry.example',
    ignore_config: { load_global: false },
    runtime: { kind: 'docker', id: 'ABC', endpoint: '/run/engine.sock' },
    scaling_config: { backend_replicas: 2 },
    mcpserver_generation: 3,
  },
  'test',
);

describe('a run configuration', () => {
  test('needs only name, image and transport', () => {
    expect(decodeRunConfig(minimal, 'f')).toMatchObject({
      schema_version: 'v0.1.0',
      proxy_mode: 'streamable-http',
      host: '127.0.0.1',
      port: 0,
      group: 'default',
      cmd_args: [],
      rest: {},
    });
  });
  test('comes back from its own text', () => {
    expect(decodeRunConfig(JSON.parse(encodeRunConfig(full)), 'f')).toEqual(full);
  });
  test('is text for people too: two spaces, one line end, and first what it is', () => {
    const text = encodeRunConfig(full);
    expect(text).toBe(`${JSON.stringify(JSON.parse(text), null, 2)}\n`);
    expect(Object.keys(JSON.parse(text) as object).slice(0, 4)).toEqual([
      'schema_version',
      'name',
      'container_name',
      'base_name',
    ]);
  });
  test('keeps and writes back members it does not know', () => {
    expect(full.rest).toEqual({ mcpserver_generation: 3 });
    expect(full.scaling_config).toEqual({ backend_replicas: 2 });
    expect(JSON.parse(encodeRunConfig(full))).toHaveProperty('mcpserver_generation', 3);
    expect(JSON.parse(encodeRunConfig(full))).toHaveProperty('scaling_config.backend_replicas', 2);
  });
  test('never exports the value of a secret variable, nor the machine it runs on', () => {
    const text = encodeExport(full);
    expect(text).not.toContain('hush');
    expect(JSON.parse(text)).toMatchObject({
      env_vars: { A: '1' },
      secret_env: ['TOKEN'],
      base_name: 'everything',
    });
    expect(JSON.parse(text)).not.toHaveProperty('runtime');
    expect(text).not.toContain('/real/a');
  });
  test('is exported with the labels that ToolHive looks for, and comes back without them', () => {
    const exported = JSON.parse(encodeExport(full)) as object;
    expect(exported).toHaveProperty('container_labels', {
      team: 'blue',
      toolhive: 'true',
      'toolhive-name': 'everything',
      'toolhive-basename': 'everything',
      'toolhive-transport': 'stdio',
      'toolhive-port': '4001',
    });
    expect(withoutFacts(full.container_labels, () => new SkepError('internal/bug'))).toEqual({
      labels: { team: 'blue' },
      dropped: [],
    });
    expect(fromToolhive({ ...exported, runtime_config: undefined }, 'f')).toMatchObject({
      value: { container_labels: { team: 'blue' } },
    });
  });
  test.each([
    [{ ...minimal, name: '../x' }, '"name"'],
    [{ ...minimal, remote_url: 'https://ann:pw@x.invalid/' }, '"remote_url": holds a login'],
    [{ ...minimal, transport: 'carrier-pigeon' }, '"transport"'],
    [{ ...minimal, port: 70_000 }, '"port"'],
    [{ ...minimal, host: 'example.com; rm' }, '"host"'],
    [{ ...minimal, cmd_args: [1] }, '"cmd_args.0"'],
    [{ ...minimal, env_vars: { 'a b': 'x' } }, '"env_vars.a b"'],
    [{ ...minimal, publish: ['1:2:3'] }, '"publish.0"'],
    [{ ...minimal, publish: ['1:70000'] }, '"publish.0"'],
    [{ ...minimal, publish: ['0'] }, '"publish.0"'],
    [{ ...minimal, data_paths: ['/etc'] }, '"data_paths.0"'],
    [{ ...minimal, data_paths: ['/a/../b'] }, '"data_paths.0"'],
    [
      { ...minimal, data_paths: Array.from({ length: 9 }, (_, at) => `/v${at}`) },
      '"data_paths": more than 8',
    ],
    [{ ...minimal, secret_env: ['A\u001B[31mB'] }, '"secret_env.0"'],
    [
      { ...minimal, permission_profile: { network: { outbound: { deny_host: ['x'] } } } },
      '"permission_profile.network.outbound"',
    ],
    [{ ...minimal, target_host: 'a b' }, '"target_host"'],
    [{ ...minimal, target_host: 'x/y?@z' }, '"target_host"'],
    [{ ...minimal, target_host: '999.1.1.1' }, '"target_host"'],
    [{ ...minimal, schema_version: 'v1.0.0' }, '"schema_version"'],
    [{ transport: 'stdio', image: 'x' }, '"name"'],
    [[], 'not a run configuration'],
    ['text', 'not a run configuration'],
    [null, 'not a run configuration'],
  ])('%j is refused naming the key', (value, named) => {
    const decode = (): unknown => decodeRunConfig(value, 'f');
    expect(decode).toThrow(expect.objectContaining({ code: 'run/invalid-config' }));
    expect(decode).toThrow(named);
  });
  test('is refused with the line and column of what is wrong', () => {
    const text = JSON.stringify({ ...minimal, port: 1, cmd_args: ['a', 7] }, null, 2);
    expect(() => decodeRunConfig(JSON.parse(text), 'f', text)).toThrow(
      'f is not a run configuration at line 8, column 5: "cmd_args.1": must be text',
    );
  });
  test.each(STORED.map(({ text, config }, index) => [index, text, config] as const))(
    'that an earlier release saved means what it meant (%i)',
    (_index, text, config) => {
      const read = decodeRunConfig(JSON.parse(text), 'f');
      expect(read).toEqual(config);
      expect(JSON.parse(encodeRunConfig(read))).toEqual(JSON.parse(text));
    },
  );
  test('any JSON is decoded or refused with a code', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        try {
          decodeRunConfig(value, 'f');
        } catch (error) {
          expect(error).toMatchObject({ code: 'run/invalid-config' });
        }
      }),
    );
  });
});
