import { expect, test } from 'vitest';
import { NO_PIN, pinAddress } from './address.ts';
import { gitEnvironment } from './environment.ts';
import { parseRepository } from './repository-url.ts';

const repository = parseRepository('https://git.example:8443/a.git');

/** The configuration that git reads from its environment. */
function settingsOf(env: Readonly<Record<string, string>>): Map<string, string> {
  return new Map(
    Array.from({ length: Number(env['GIT_CONFIG_COUNT']) }, (_, index) => [
      env[`GIT_CONFIG_KEY_${index}`] ?? '',
      env[`GIT_CONFIG_VALUE_${index}`] ?? '',
    ]),
  );
}

test('passes on what git needs of this machine and nothing else', () => {
  const own = {
    PATH: '/bin',
    HTTPS_PROXY: 'http://proxy',
    GIT_DIR: '/x',
    GIT_ASKPASS: 'x',
    SECRET: 'x',
    HOME: '/home/ann',
    no_proxy: undefined,
  };
  const env = gitEnvironment({
    own,
    repository,
    credentials: undefined,
    pin: NO_PIN,
    ceiling: '/tmp',
    home: '/tmp/x',
  });
  expect(env).toMatchObject({
    PATH: '/bin',
    HTTPS_PROXY: 'http://proxy',
    GIT_TERMINAL_PROMPT: '0',
    HOME: '/tmp/x',
  });
  for (const name of ['GIT_DIR', 'GIT_ASKPASS', 'SECRET', 'no_proxy']) expect(env).not.toHaveProperty(name);
});

test('credentials are for the host they were given for, and stand in no setting', () => {
  const credentials = { username: 'ann', password: 'hunter2' };
  const env = gitEnvironment({
    own: {},
    repository,
    credentials,
    pin: NO_PIN,
    ceiling: '/tmp',
    home: '/tmp/x',
  });
  const settings = settingsOf(env);
  expect([...settings.keys()]).toContain('credential.https://git.example:8443.helper');
  expect([...settings.values()].join()).not.toContain('hunter2');
  expect(settings.get('credential.helper')).toBe('');
});

const resolve =
  (...addresses: string[]) =>
  () =>
    Promise.resolve(addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })));

test('a pinned repository is fetched from the addresses that were judged, without redirects', async () => {
  const pin = await pinAddress(repository, resolve('1.1.1.1', '2606:4700::1111'));
  const settings = settingsOf(
    gitEnvironment({ own: {}, repository, credentials: undefined, pin, ceiling: '/tmp', home: '/tmp/x' }),
  );
  expect(settings.get('http.curloptResolve')).toBe('git.example:8443:1.1.1.1,[2606:4700::1111]');
  expect(settings.get('http.followRedirects')).toBe('false');
});

test('ssh is pinned too, and still checks the key of the name', async () => {
  const ssh = parseRepository('git@git.example:a.git');
  const pin = await pinAddress(ssh, resolve('1.1.1.1'));
  const env = gitEnvironment({
    own: {},
    repository: ssh,
    credentials: undefined,
    pin,
    ceiling: '/tmp',
    home: '/tmp/x',
  });
  expect(env['GIT_SSH_COMMAND']).toMatch(
    /^ssh -o BatchMode=yes .*-o HostName=1\.1\.1\.1 -o HostKeyAlias=git\.example$/u,
  );
});

test('with a key of its own ssh uses no other, no agent and no settings of the account', () => {
  const env = gitEnvironment({
    own: { SSH_AUTH_SOCK: '/run/agent', PATH: '/bin' },
    repository: parseRepository('git@git.example:a.git'),
    credentials: undefined,
    pin: NO_PIN,
    ceiling: '/tmp',
    home: '/tmp/x',
    sshKeyFile: '/keys/one',
  });
  expect(env).not.toHaveProperty('SSH_AUTH_SOCK');
  expect(env['GIT_SSH_COMMAND']).toContain(
    ' -F /dev/null -i /keys/one -o IdentitiesOnly=yes -o IdentityAgent=none',
  );
});

test.each([
  ['https://git.example/a', ['1.1.1.1', '10.0.0.1'], 'the address of "git.example" (10.0.0.1) is not public'],
  ['git@git.example:a', ['127.0.0.1'], 'the address of "git.example" (127.0.0.1) is not public'],
  ['https://[::1]/a', [], 'the address of "::1" is not public'],
  ['https://0x7f.1/a', [], 'the address of "127.0.0.1" is not public'],
  ['ssh://169.254.169.254/a', [], 'the address of "169.254.169.254" is not public'],
])('%s at %j is refused', async (address, addresses, message) => {
  await expect(pinAddress(parseRepository(address), resolve(...addresses))).rejects.toMatchObject({
    code: 'fetch/refused-address',
    message,
  });
});

test('a name without an address is not reachable', async () => {
  await expect(pinAddress(repository, () => Promise.reject(new Error('ENOTFOUND')))).rejects.toMatchObject({
    code: 'source/unreachable',
    message: '"git.example" has no address',
  });
  await expect(pinAddress(repository, resolve())).rejects.toMatchObject({ code: 'source/unreachable' });
});
