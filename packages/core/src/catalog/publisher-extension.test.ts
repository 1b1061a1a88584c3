import { describe, expect, test } from 'vitest';
import { extensionStatus, extensionSummary, PUBLISHER_META } from './extension-summary.ts';
import { publisherExtension } from './publisher-extension.ts';
import { serverDocument } from './server-json.ts';

function document(blocks: object, packages = ['img:1']) {
  return serverDocument.parse({
    name: 'io.acme/x',
    version: '1.0.0',
    description: 'x',
    packages: packages.map((identifier) => ({ registryType: 'oci', identifier })),
    _meta: { [PUBLISHER_META]: { 'io.github.stacklok': blocks } },
  });
}

describe('publisherExtension', () => {
  test('reads the block of its key', () => {
    const server = document({ 'img:1': { proxy_port: 1 }, 'img:2': { proxy_port: 2 } }, ['img:1', 'img:2']);
    expect(publisherExtension(server, 'img:2').proxy_port).toBe(2);
    expect(publisherExtension(server, 'img:3')).toEqual({});
  });

  test('takes the only block of a server with a single package, whatever its key', () => {
    expect(publisherExtension(document({ other: { args: ['a'] } }), 'img:1').args).toEqual(['a']);
    expect(publisherExtension(document({ other: { args: ['a'] } }, ['img:1', 'img:2']), 'img:1')).toEqual({});
  });

  test('is empty without metadata, and no inherited name is a key', () => {
    expect(
      publisherExtension(serverDocument.parse({ name: 'x', version: '1', description: 'x' }), 'k'),
    ).toEqual({});
    expect(publisherExtension(document({}, ['a', 'b']), 'constructor')).toEqual({});
  });

  test.each([
    ['permissions', { network: { outbound: { allow_host: 'x.test' } } }],
    ['permissions', 'none'],
    ['proxy_port', 0],
    ['args', [1]],
    ['env_vars', [{ name: 'A B' }]],
    ['oauth_config', { callback_port: 'x' }],
  ])('refuses a %s of a wrong type: it decides how the server runs', (member, value) => {
    expect(() => publisherExtension(document({ 'img:1': { [member]: value } }), 'img:1')).toThrow(
      expect.objectContaining({
        code: 'catalog/invalid-extension',
        message: expect.stringMatching(new RegExp(`"io.acme/x".*${member}`)),
      }),
    );
  });

  test.each([
    ['tags', 'x'],
    ['metadata', []],
    ['tool_definitions', [{}]],
  ])('reads %s of a wrong type as absent: it is only shown', (member, value) => {
    const block = { [member]: value, stateless: true };
    expect(publisherExtension(document({ 'img:1': block }), 'img:1')).toEqual({ stateless: true });
  });
});

test('extensionSummary joins all blocks and survives malformed ones', () => {
  const server = document({
    a: { status: 'Deprecated', tags: ['x1'], tools: ['t'] },
    b: { tier: 'Official', tags: ['x1', 'x2'], tools: 1 },
    c: 7,
  });
  expect(extensionSummary(server)).toEqual({
    status: 'deprecated',
    tier: 'Official',
    tags: ['x1', 'x2'],
    tools: ['t'],
  });
});

test.each([
  [{ a: { status: 'DEPRECATED' } }, 'deprecated'],
  [{ a: 7, b: ['deprecated'], c: { status: 1 }, d: { status: 'gone' }, e: { status: 'Active' } }, 'active'],
  [{ a: { status: 'active' }, b: { status: 'deprecated' } }, 'active'],
  [{ a: { status: null } }, undefined],
  [{}, undefined],
])('extensionStatus of %j is %s', (blocks, status) => {
  expect(extensionStatus(document(blocks))).toBe(status);
});
