import { describe, expect, test } from 'vitest';
import { isMoving, parseImageReference } from './image-reference.ts';
import { negotiateVersion } from './client.ts';
import { parseEndpoint } from './endpoint.ts';

const digest = `sha256:${'a'.repeat(64)}`;

describe('parseImageReference', () => {
  test.each([
    ['busybox', { host: 'docker.io', repository: 'busybox' }, true],
    ['busybox:latest', { host: 'docker.io', repository: 'busybox', tag: 'latest' }, true],
    ['team/app:1.2', { host: 'docker.io', repository: 'team/app', tag: '1.2' }, false],
    ['ghcr.io/team/app', { host: 'ghcr.io', repository: 'ghcr.io/team/app' }, true],
    ['127.0.0.1:5055/x:1', { host: '127.0.0.1:5055', repository: '127.0.0.1:5055/x', tag: '1' }, false],
    ['localhost/x:1', { host: 'localhost', repository: 'localhost/x', tag: '1' }, false],
    [`a/b@${digest}`, { host: 'docker.io', repository: 'a/b', digest }, false],
    [`a/b:latest@${digest}`, { host: 'docker.io', repository: 'a/b', tag: 'latest', digest }, false],
  ])('takes %s apart', (text, expected, moving) => {
    const reference = parseImageReference(text);
    expect(reference).toEqual(expected);
    expect(isMoving(reference)).toBe(moving);
  });

  test.each(['', 'UPPER', 'a b', '-x', 'a:', 'a@sha256:1', 'a//b', 'a/../b', 'x?y=1', 'a:b:c'])(
    'refuses %j',
    (text) => {
      expect(() => parseImageReference(text)).toThrow(
        expect.objectContaining({ code: 'runtime/image-not-found' }),
      );
    },
  );
});

describe('negotiateVersion', () => {
  test.each([
    ['1.41', '1.41'],
    ['1.24', '1.24'],
    ['1.99', '1.51'],
  ])('engine %s: speak %s', (offered, spoken) => expect(negotiateVersion(offered)).toBe(spoken));

  test.each(['1.23', '', '2.0', 'x'])('refuses %j', (offered) => {
    expect(() => negotiateVersion(offered)).toThrow(
      expect.objectContaining({ code: 'runtime/engine-refused' }),
    );
  });
});

describe('parseEndpoint', () => {
  test.each([
    ['unix:///run/docker.sock', { kind: 'unix', path: '/run/docker.sock' }],
    ['tcp://10.0.0.1:2375', { kind: 'tcp', host: '10.0.0.1', port: 2375 }],
    ['tcp://[::1]:2375', { kind: 'tcp', host: '::1', port: 2375 }],
    ['https://host:2376', { kind: 'tcp', host: 'host', port: 2376 }],
  ])('reads %s', (text, endpoint) =>
    expect(parseEndpoint(text)).toEqual({ endpoint, isSecure: text.startsWith('https') }),
  );

  test.each([
    ['ssh://me@host', 'ssh connections are not supported'],
    ['npipe:////./pipe/docker', 'named pipes'],
    ['nonsense', 'neither unix'],
  ])('refuses %s with the reason', (text, reason) => {
    expect(() => parseEndpoint(text)).toThrow(
      expect.objectContaining({ code: 'runtime/unavailable', message: expect.stringContaining(reason) }),
    );
  });

  test('does not repeat a login in its message', () => {
    expect(() => parseEndpoint('ssh://me:secret@host')).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('secret') }),
    );
  });
});
