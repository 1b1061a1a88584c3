import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Ajv } from 'ajv';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { toKubernetes } from './kubernetes.ts';
import { decodeRunConfig } from './run-config.ts';

const SCHEMA = resolve(
  import.meta.dirname,
  '../../../../../shared/data/schemas/toolhive-crds/mcpservers.schema.json',
);

const minimal = {
  name: 'notes',
  image: 'registry.example/notes:1',
  transport: 'stdio',
  port: 18_080,
  host: '127.0.0.1',
  permission_profile: { network: { outbound: { insecure_allow_all: true } } },
};
const exported = (more: object) => toKubernetes(decodeRunConfig({ ...minimal, ...more }, 'f'));
const server = (more: object): unknown => parseAllDocuments(exported(more).text).at(-1)?.toJSON();

describe('a workload for a cluster', () => {
  test('says what it runs, how it speaks and what it may do', () => {
    const more = {
      cmd_args: ['--root', '/data'],
      env_vars: { B: '2', A: 'x' },
      volumes: ['/srv/notes:/data:ro'],
    };
    const profile = { read: ['/srv/notes:/data'], network: { outbound: { insecure_allow_all: true } } };
    expect(parse(exported({ ...more, permission_profile: profile }).text)).toEqual({
      apiVersion: 'toolhive.stacklok.dev/v1beta1',
      kind: 'MCPServer',
      metadata: { name: 'notes' },
      spec: {
        image: 'registry.example/notes:1',
        transport: 'stdio',
        proxyMode: 'streamable-http',
        proxyPort: 18_080,
        args: ['--root', '/data'],
        env: [
          { name: 'A', value: 'x' },
          { name: 'B', value: '2' },
        ],
        volumes: [{ name: 'volume-0', hostPath: '/srv/notes', mountPath: '/data', readOnly: true }],
        permissionProfile: { type: 'builtin', name: 'network' },
      },
    });
  });

  test('that speaks HTTP names the port of its server, and no translation', () => {
    const resource = server({ transport: 'streamable-http', target_port: 3000 });
    expect(resource).toMatchObject({ spec: { transport: 'streamable-http', mcpPort: 3000 } });
    expect(resource).not.toHaveProperty('spec.proxyMode');
  });

  test('refers to secrets, never tells them, and says how each is made', () => {
    const { text, notes } = exported({
      env_vars: { API_KEY: 'hunter2', PLAIN: 'x' },
      secret_env: ['API_KEY'],
      secrets: ['shared-token,target=TOKEN'],
    });
    expect(text).not.toContain('hunter2');
    expect(parse(text)).toMatchObject({
      spec: {
        env: [{ name: 'PLAIN', value: 'x' }],
        secrets: [
          { name: 'notes-api-key', key: 'API_KEY', targetEnvName: 'API_KEY' },
          { name: 'notes-token', key: 'TOKEN', targetEnvName: 'TOKEN' },
        ],
      },
    });
    expect(notes).toEqual([
      'It reads API_KEY from a secret: kubectl create secret generic notes-api-key --from-literal=API_KEY=…',
      'It reads TOKEN from a secret: kubectl create secret generic notes-token --from-literal=TOKEN=…',
    ]);
  });

  test('has a secret of its own for each variable, also where names differ by case alone', () => {
    expect(server({ secret_env: ['Key', 'KEY', 'key'] })).toMatchObject({
      spec: { secrets: [{ name: 'notes-key' }, { name: 'notes-key-1' }, { name: 'notes-key-2' }] },
    });
  });

  test('keeps a profile of its own in a ConfigMap, and gives away nothing that the profile denies', () => {
    const permission_profile = {
      network: { outbound: { allow_host: ['api.example.com'], allow_port: [443] } },
    };
    const [map, resource] = parseAllDocuments(exported({ permission_profile }).text).map((one): unknown =>
      one.toJSON(),
    );
    expect(map).toMatchObject({ kind: 'ConfigMap', metadata: { name: 'notes-profile' } });
    const { data } = map as { data: Record<string, string> };
    expect(JSON.parse(data['profile.json'] ?? '')).toEqual(permission_profile);
    expect(resource).toMatchObject({
      spec: { permissionProfile: { type: 'configmap', name: 'notes-profile', key: 'profile.json' } },
    });
  });

  test.each([
    [{}, 'none'],
    [{ network: { outbound: { insecure_allow_all: false } } }, 'none'],
    [{ network: { outbound: { insecure_allow_all: true } } }, 'network'],
  ])('with the profile %j has the built-in one', (permission_profile, name) => {
    expect(server({ permission_profile })).toMatchObject({
      spec: { permissionProfile: { type: 'builtin', name } },
    });
  });

  test('has its limits in the units of a cluster, where m is a thousandth', () => {
    expect(server({ memory: '512m', cpus: '0.5' })).toMatchObject({
      spec: { resources: { limits: { memory: '536870912', cpu: '0.5' } } },
    });
    expect(server({})).not.toHaveProperty('spec.resources');
  });

  const policies = ['permit(principal, action == Action::"call_tool", resource == Tool::"look");'];
  const entities_json = '[{"uid":{"type":"Team","id":"a"},"attrs":{},"parents":[]}]';
  test.each([
    [{ policies }, { type: 'inline', groupEntityType: 'SkepGroup', inline: { policies } }],
    [
      { policies, entities_json, group_claim_name: 'teams', role_claim_name: 'r', group_entity_type: 'Team' },
      {
        type: 'inline',
        groupClaimName: 'teams',
        roleClaimName: 'r',
        groupEntityType: 'Team',
        inline: { policies, entitiesJson: entities_json },
      },
    ],
  ])('has the policies %j', (cedar, authzConfig) => {
    const more = { authz_config: { version: '1.0', type: 'cedarv1', cedar } };
    expect(server(more)).toMatchObject({ spec: { authzConfig } });
    expect(exported(more).notes).toEqual([]);
  });

  test.each([
    { type: 'cedarv1', cedar: { policies, multi_valued_claims: ['teams'] } },
    { type: 'httpv1', pdp: { http: { url: 'https://pdp.example' }, claim_mapping: 'mpe' } },
  ])('says that it does not have %j', (authz) => {
    const more = { authz_config: { version: '1.0', ...authz } };
    expect(server(more)).not.toHaveProperty('spec.authzConfig');
    expect(exported(more).notes.join('')).toContain('--authz-config, so everybody may use everything');
  });

  test('is audited where the workload is, and says what else its audit is', () => {
    expect(server({ audit_config: {} })).toMatchObject({ spec: { audit: { enabled: true } } });
    expect(exported({ audit_config: {} }).notes).toEqual([]);
    const more = { audit_config: { component: 'notes' } };
    expect(server(more)).toMatchObject({ spec: { audit: { enabled: true } } });
    expect(exported(more).notes.join('')).toContain('what --audit-config says beside');
    expect(server({})).not.toHaveProperty('spec.audit');
  });

  test('has the prefix of its addresses', () => {
    const more = { transport: 'sse', target_port: 80, endpoint_prefix: '/notes' };
    expect(server(more)).toMatchObject({ spec: { endpointPrefix: '/notes' } });
    expect(server({})).not.toHaveProperty('spec.endpointPrefix');
  });

  test('says what its resource has no field for', () => {
    expect(exported({ isolate_network: true, publish: ['80:80'], read_only: true }).notes).toEqual([
      'Not in it, because the resource has no field for it: --publish, --isolate-network, --read-only.',
    ]);
  });

  test('says that volumes that servers share stay here, and names no directory for them', () => {
    const shared = exported({ permission_profile: { write: ['volume://notes:/notes'] } });
    expect(shared.text).not.toContain('hostPath');
    expect(shared.notes.join()).toContain('volumes that servers share');
  });

  test('made from a package is refused, because no cluster could pull it', () => {
    const made = { package: { kind: 'package', ecosystem: 'npm', name: 'x' } };
    expect(() => exported(made)).toThrow(expect.objectContaining({ code: 'run/no-image' }));
  });

  test.skipIf(!existsSync(SCHEMA))('is valid by the schema of the resource, whatever it is called', () => {
    const schema = JSON.parse(readFileSync(SCHEMA, 'utf8')) as object;
    const isValid = new Ajv({ strict: false, validateFormats: false }).compile(schema);
    const word = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_-]{1,99}$/);
    fc.assert(
      fc.property(word, fc.dictionary(fc.stringMatching(/^[A-Z_]{1,9}$/), fc.string()), (name, variables) => {
        const env_vars = Object.fromEntries(
          Object.entries(variables).map(([key, value]) => [key, value.replaceAll('\0', '')]),
        );
        const resource = server({
          name,
          env_vars,
          secret_env: Object.keys(env_vars).slice(0, 2),
          group: 'team a',
          endpoint_prefix: '/a',
          authz_config: { version: '1.0', type: 'cedarv1', cedar: { policies, entities_json } },
          audit_config: {},
        });
        expect(isValid(resource), JSON.stringify(isValid.errors)).toBe(true);
        expect(resource).toHaveProperty(
          'metadata.name',
          expect.stringMatching(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/),
        );
      }),
    );
  });
});
