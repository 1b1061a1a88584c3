import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { supervisorEnv } from './spawn-supervisor.ts';

test('a supervisor gets what it needs to find its places, its engine and its certificates', () => {
  const needed = {
    HOME: '/home/me',
    PATH: '/bin',
    XDG_STATE_HOME: '/state',
    DOCKER_HOST: 'unix:///run/docker.sock',
    NODE_EXTRA_CA_CERTS: '/ca.pem',
    SKEP_RUNTIME: 'sandbox',
  };
  expect(supervisorEnv(needed)).toEqual({ ...needed, SKEP_DETACHED: '1' });
});

test('a supervisor gets no secret of the shell that it was started from', () => {
  const secrets = {
    GITHUB_TOKEN: 'x',
    AWS_SECRET_ACCESS_KEY: 'x',
    SKEP_SECRET_TOKEN: 'x',
    SKEP_SECRETS_PASSWORD: 'x',
    REGISTRY_PASSWORD: 'x',
    NPM_TOKEN: 'x',
    HTTPS_PROXY: 'http://me:hunter2@proxy.example',
    NODE_OPTIONS: '--require /tmp/evil.js',
    LD_PRELOAD: '/tmp/evil.so',
  };
  expect(supervisorEnv({ PATH: '/bin', ...secrets })).toEqual({ PATH: '/bin', SKEP_DETACHED: '1' });
});

test('whatever the environment holds, only known names pass, with the values that they had', () => {
  const env = fc.dictionary(
    fc.oneof(fc.constantFrom('HOME', 'PATH', 'DOCKER_HOST', '__proto__', 'constructor'), fc.string()),
    fc.option(fc.string(), { nil: undefined }),
  );
  fc.assert(
    fc.property(env, (given) => {
      const { SKEP_DETACHED: detached, ...passed } = supervisorEnv(given);
      expect(detached).toBe('1');
      for (const [name, value] of Object.entries(passed)) {
        expect(name).toMatch(/^[A-Z_]+$/);
        expect(value).toBe(given[name]);
      }
    }),
  );
});
