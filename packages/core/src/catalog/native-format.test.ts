import { describe, expect, test } from 'vitest';
import { convertNative } from './native-format.ts';
import { nativeGroup } from './native-group.ts';

const META = 'io.modelcontextprotocol.registry/publisher-provided';
const one = (file: object) => convertNative(file).next().value;
const container = (more: object = {}) => ({ image: 'ghcr.io/acme/x:1.2.3', description: 'd', ...more });

test('converts a container server, members without a place going into the publisher extension', () => {
  const entry = {
    title: 'X',
    description: 'Does x',
    tier: 'Official',
    status: 'Active',
    transport: 'streamable-http',
    target_port: 8080,
    proxy_port: 9000,
    image: 'ghcr.io/acme/x:1.2.3',
    repository_url: 'https://gitlab.com/acme/x',
    tags: ['a1'],
    args: ['--x'],
    permissions: { network: { outbound: { allow_port: [443] } } },
    env_vars: [
      { name: 'KEY', description: 'k', required: true, secret: true, choices: ['a'] },
      { name: 'B', default: 'v' },
    ],
    unknown_member: { kept: true },
  };
  expect(one({ servers: { x: entry } })).toEqual({
    key: 'x',
    document: {
      $schema: expect.stringContaining('2025-12-11'),
      name: 'io.github.stacklok/x',
      description: 'Does x',
      title: 'X',
      repository: { url: 'https://gitlab.com/acme/x', source: 'gitlab' },
      version: '1.2.3',
      packages: [
        {
          registryType: 'oci',
          identifier: 'ghcr.io/acme/x:1.2.3',
          transport: { type: 'streamable-http', url: 'http://localhost:8080' },
          environmentVariables: [
            { name: 'KEY', description: 'k', isRequired: true, isSecret: true, choices: ['a'] },
            { name: 'B', default: 'v' },
          ],
        },
      ],
      _meta: {
        [META]: {
          'io.github.stacklok': {
            'ghcr.io/acme/x:1.2.3': {
              tier: 'Official',
              status: 'Active',
              proxy_port: 9000,
              tags: ['a1'],
              args: ['--x'],
              permissions: { network: { outbound: { allow_port: [443] } } },
              unknown_member: { kept: true },
            },
          },
        },
      },
    },
  });
});

test('converts a remote server', () => {
  const entry = {
    url: 'https://x.test/mcp',
    description: 'd',
    headers: [{ name: 'K', required: true }],
    oauth_config: { issuer: 'https://i.test' },
  };
  expect(one({ remote_servers: { 'io.acme/x': entry } })).toEqual({
    key: 'io.acme/x',
    document: {
      $schema: expect.any(String),
      name: 'io.acme/x',
      description: 'd',
      version: '1.0.0',
      remotes: [{ type: 'sse', url: 'https://x.test/mcp', headers: [{ name: 'K', isRequired: true }] }],
      _meta: {
        [META]: {
          'io.github.stacklok': {
            'https://x.test/mcp': { oauth_config: { issuer: 'https://i.test' }, status: 'active' },
          },
        },
      },
    },
  });
});

test.each([
  ['ghcr.io/acme/x:1.2.3', '1.2.3'],
  ['ghcr.io/acme/x:v1.2.3', '1.2.3'],
  ['ghcr.io/acme/x:1.2.3-rc.1@sha256:abc', '1.2.3-rc.1'],
  ['ghcr.io/acme/x:latest', '1.0.0'],
  ['ghcr.io/acme/x:1.2', '1.0.0'],
  ['ghcr.io/acme/x@sha256:abc', '1.0.0'],
  ['localhost:5000/x', '1.0.0'],
])('the version of image %s is %s', (image, version) => {
  expect(one({ servers: { x: container({ image }) } })).toMatchObject({ document: { version } });
});

test('takes the name from the entry before the key', () => {
  expect(one({ servers: { x: container({ name: 'y' }) } })).toMatchObject({
    document: { name: 'io.github.stacklok/y' },
  });
});

test('flattens the members of groups', () => {
  const groups = [
    {
      name: 'g',
      servers: { b: container() },
      remote_servers: { c: { url: 'https://c.test', description: 'd' } },
    },
  ];
  expect([...convertNative({ servers: { a: container() }, groups })].map(({ key }) => key)).toEqual([
    'a',
    'b',
    'c',
  ]);
});

describe('says why an entry cannot be converted', () => {
  test.each([
    ['no image', { description: 'd' }, 'image: expected string'],
    ['an unknown transport', container({ transport: 'http' }), 'transport:'],
    ['a port out of range', container({ target_port: 70_000 }), 'target_port:'],
    ['no description', { image: 'x' }, 'description:'],
    ['no object', 'x', 'expected object'],
  ])('%s', (_, entry, reason) => {
    expect(one({ servers: { x: entry } })).toEqual({ key: 'x', fault: expect.stringContaining(reason) });
  });
});

test('converts no more than is asked for', () => {
  const untouched = {
    get servers(): never {
      throw new Error('touched');
    },
  };
  const converted = convertNative({ servers: { a: container() }, groups: [untouched] });
  expect(converted.next().value).toMatchObject({ key: 'a' });
  expect(() => converted.next()).toThrow('touched');
});

test('a group names its members as their documents are named', () => {
  const group = {
    name: 'web',
    description: 'd',
    servers: { a: container(), 'x.test/b': container(), c: container({ name: 'y.test/c' }) },
    remote_servers: { d: { url: 'https://d.test', description: 'd' } },
  };
  const names = [...convertNative({ groups: [group] })].map((one) => ('document' in one ? one.document : {}));
  expect(nativeGroup(group)?.servers).toEqual(names.map((document) => (document as { name: string }).name));
});

test.each([[null], [3], ['web'], [{}], [{ name: 3 }], [[]]])('%j is no group', (value) => {
  expect(nativeGroup(value)).toBeUndefined();
});
