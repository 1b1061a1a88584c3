import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findLogin, registryAuth } from './credentials.ts';

const config = (value: object): string => JSON.stringify(value);
const auth = Buffer.from('bob:s:3').toString('base64');

let programs: string;
beforeAll(async () => {
  programs = await mkdtemp(join(tmpdir(), 'skep-helpers-'));
  for (const [name, script] of Object.entries(HELPERS)) {
    const file = join(programs, `docker-credential-${name}`);
    await writeFile(file, `#!/bin/sh\n${script}\n`);
    await chmod(file, 0o755);
  }
});
afterAll(() => rm(programs, { recursive: true }));

const HELPERS = {
  // Answers with what it was told, so that a test sees it.
  echo: 'read -r host; printf \'{"ServerURL":"%s","Username":"%s of %s","Secret":"s3"}\' "$host" "$1" "$host"',
  token: 'printf \'{"ServerURL":"x","Username":"<token>","Secret":"t0"}\'',
  none: 'echo "credentials not found in native keychain"; exit 1',
  locked: 'echo "the keychain is locked"; exit 1',
  odd: 'echo "hello"',
};

describe('the login for a registry', () => {
  test('comes from variables of the host, then from general ones, then from the docker config', async () => {
    const env = {
      REGISTRY_GHCR_IO_USERNAME: 'a',
      REGISTRY_GHCR_IO_PASSWORD: '1',
      REGISTRY_USERNAME: 'b',
      REGISTRY_PASSWORD: '2',
    };
    const dockerConfig = config({ auths: { 'ghcr.io': { auth } } });
    expect(await findLogin('ghcr.io', { env, dockerConfig })).toEqual({
      login: { username: 'a', password: '1' },
    });
    expect(await findLogin('quay.io', { env, dockerConfig })).toEqual({
      login: { username: 'b', password: '2' },
    });
    const login = { username: 'bob', password: 's:3' };
    expect(await findLogin('ghcr.io', { env: {}, dockerConfig })).toEqual({ login });
    expect(JSON.parse(Buffer.from(registryAuth('ghcr.io', login), 'base64url').toString())).toEqual({
      ...login,
      serveraddress: 'ghcr.io',
    });
  });

  test('of Docker Hub has its historical key', async () => {
    const dockerConfig = config({ auths: { 'https://index.docker.io/v1/': { identitytoken: 't' } } });
    expect(await findLogin('docker.io', { env: {}, dockerConfig })).toEqual({
      login: { identitytoken: 't' },
    });
  });

  test.each([
    [{ credsStore: 'echo' }, 'x.test', { login: { username: 'get of x.test', password: 's3' } }],
    [
      { credsStore: 'locked', credHelpers: { 'x.test': 'token' } },
      'x.test',
      { login: { identitytoken: 't0' } },
    ],
    [
      { credsStore: 'echo' },
      'docker.io',
      { login: { username: 'get of https://index.docker.io/v1/', password: 's3' } },
    ],
    // What a helper does not have may stand in the file.
    [
      { credsStore: 'none', auths: { 'x.test': { auth } } },
      'x.test',
      { login: { username: 'bob', password: 's:3' } },
    ],
    [{ credsStore: 'none' }, 'x.test', {}],
  ])('comes from the helper that %j names for %s', async (content, host, found) => {
    const env = { PATH: `${programs}:${process.env['PATH']}` };
    expect(await findLogin(host, { env, dockerConfig: config(content) })).toEqual(found);
  });

  test.each([
    ['locked', 'docker-credential-locked failed, pulling without a login'],
    ['odd', 'docker-credential-odd answered something else, pulling without a login'],
    ['missing', 'docker-credential-missing was not found, pulling without a login'],
    ['../../evil', 'docker-credential-../../evil is no name of a program, pulling without a login'],
  ])('is done without, and said so, where the helper is %s', async (credsStore, note) => {
    const env = { PATH: `${programs}:${process.env['PATH']}` };
    expect(await findLogin('x.test', { env, dockerConfig: config({ credsStore }) })).toEqual({ note });
  });

  test('is done without where the file is broken or missing', async () => {
    const { note } = await findLogin('x.test', { env: {}, dockerConfig: '{' });
    expect(note).toContain('not valid');
    expect(await findLogin('x.test', { env: {} })).toEqual({});
  });
});
