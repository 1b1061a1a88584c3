import { expect, test } from 'vitest';
import type { Endpoint } from './endpoint.ts';
import { unreachable } from './failure.ts';

const at = (path: string): Endpoint => ({ kind: 'unix', path });

test.each([
  ['/var/run/docker.sock', 'EACCES', 'permission denied', /group that owns the socket .*or use a rootless/],
  ['/run/podman/podman.sock', 'EACCES', 'permission denied', /^use your own Podman: systemctl --user/],
  ['/var/run/docker.sock', 'ECONNREFUSED', 'nothing listens there', undefined],
  ['/var/run/docker.sock', 'CERT_HAS_EXPIRED', 'its certificate has expired', /ca\.pem/],
])('an engine at %s that fails with %s is told with what to do', (path, code, why, hint) => {
  const { message, hint: told } = unreachable(at(path), Object.assign(new TypeError(), { code }));
  expect(message).toBe(`the container engine at unix://${path} does not answer: ${why}`);
  if (hint !== undefined) expect(told).toMatch(hint);
});
