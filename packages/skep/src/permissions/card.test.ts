import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { permissionCard, type Permitted } from './card.ts';

const NOTHING: Permitted = {
  permission_profile: { network: { mode: 'none' } },
  env_vars: {},
  secret_env: [],
};

const textsOf = (permitted: Partial<Permitted>): Readonly<Record<string, string>> =>
  Object.fromEntries(permissionCard({ ...NOTHING, ...permitted }).map(({ key, text }) => [key, text]));

test('a server that may do nothing is said to reach nothing, and how much it may use, in five lines', () => {
  expect(permissionCard(NOTHING).map(({ label, text }) => `${label}: ${text}`)).toEqual([
    'Reads: no files of this machine',
    'Writes: no files of this machine',
    'Network: none',
    'Secrets: none',
    'Uses: 2 GiB of memory, 512 processes, 4 GiB of disk',
  ]);
  const reached = permissionCard(NOTHING).filter(({ key }) => key !== 'uses');
  expect(reached.flatMap(({ values }) => values)).toEqual([]);
});

test('that a container may not write its own files is said', () => {
  expect(textsOf({ read_only: true })['own_files']).toBe('read-only in a container');
  expect(textsOf({})).not.toHaveProperty('own_files');
});

test('files are named as on this machine, with their place in the server where that differs', () => {
  const permission_profile = { read: ['/home/a/notes:/notes', '/etc/hosts'], write: ['/data:/data'] };
  expect(textsOf({ permission_profile })).toMatchObject({
    reads: '/home/a/notes as /notes, /etc/hosts',
    writes: '/data',
  });
});

test('volumes that other servers may have are named beside files', () => {
  const permission_profile = { read: ['volume://a:/in'], write: ['/data', 'volume://b:/out'] };
  expect(textsOf({ permission_profile })).toMatchObject({
    reads: 'no files of this machine',
    writes: '/data',
    shares: 'the volume a as /in, read-only, the volume b as /out',
  });
  expect(textsOf({})).not.toHaveProperty('shares');
});

test.each([
  [{}, 'any host'],
  [{ outbound: { insecure_allow_all: true, allow_host: ['a.b'] } }, 'any host'],
  [{ outbound: { allow_host: ['a.b'], allow_port: [443] } }, 'any host (its profile lists a.b, port 443)'],
  [{ mode: 'none', outbound: { allow_host: ['a.b'] } }, 'none'],
  [{ mode: 'backend' }, 'any host, the network backend'],
])('the network of %j is "%s"', (network, text) => {
  expect(textsOf({ permission_profile: { network } })['network']).toBe(text);
});

const NEVER = "never 127.0.0.1 here, other servers or a cloud's metadata";

test.each([
  [{}, 'no host'],
  [{ outbound: {} }, 'no host'],
  [{ mode: 'none', outbound: { insecure_allow_all: true } }, 'no host'],
  [{ outbound: { insecure_allow_all: true } }, `any public host; ${NEVER}`],
  [{ outbound: { insecure_allow_all: true, allow_host: ['nas.lan'] } }, `any public host, nas.lan; ${NEVER}`],
  [{ outbound: { allow_host: ['A.b', '.y.org'], allow_port: [443] } }, `a.b:443, .y.org:443; ${NEVER}`],
  [{ outbound: { allow_host: ['a.b'] } }, `a.b; ${NEVER}`],
  [{ outbound: { allow_host: ['fd00::1'], allow_port: [80, 443] } }, `[fd00::1]:80, [fd00::1]:443; ${NEVER}`],
  [{ outbound: { allow_port: [443] } }, `any public host:443; ${NEVER}`],
  [
    { outbound: { allow_host: ['a.b'], allow_port: [1, 2, 3, 4] } },
    `a.b, port 1, port 2, port 3, port 4; ${NEVER}`,
  ],
  [
    { outbound: { allow_host: ['169.254.169.254'], allow_port: [80] } },
    `169.254.169.254:80; ${NEVER}; so not 169.254.169.254`,
  ],
])('the network of %j, isolated, is "%s"', (network, text) => {
  const permitted = { isolate_network: true, permission_profile: { network } };
  expect(textsOf(permitted)['network']).toBe(text);
  expect(textsOf(permitted)).not.toHaveProperty('not_enforced');
});

test('what the engine has for its own use is named where it is opened', () => {
  const permitted = { isolate_network: true, allow_runtime_gateway: true };
  const open = { ...permitted, permission_profile: { network: { outbound: {} } } };
  expect(textsOf(open)['network']).toBe(
    "the container engine's gateway addresses; never other servers or a cloud's metadata",
  );
  expect(textsOf({ ...permitted, permission_profile: { network: { mode: 'none' } } })['network']).toBe(
    'no host',
  );
});

test('secrets are there by name, by the word of the catalogue or by their own, and never by value', () => {
  const permitted = {
    env_vars: { TZ: 'UTC', PIN: '1234', GITHUB_TOKEN: 'ghp_x' },
    secret_env: ['PIN', 'GONE'],
  };
  expect(textsOf(permitted)['secrets']).toBe('PIN, GITHUB_TOKEN');
  expect(JSON.stringify(permissionCard({ ...NOTHING, ...permitted }))).not.toMatch(/1234|ghp_x/);
});

test.each([
  ['root', 'sandbox', { text: 'root', tone: 'caution' }],
  ['0:1000', 'sandbox', { text: 'root', tone: 'caution' }],
  ['1000:1000', 'sandbox', { text: 'user 1000:1000', tone: 'plain' }],
  ['root', 'docker', { text: 'root', tone: 'caution' }],
])('the user that the person named is there: %s, %s', (sandbox_user, kind, expected) => {
  const card = permissionCard({ ...NOTHING, sandbox_user, runtime: { kind } });
  const found = card.find(({ key }) => key === 'runs_as');
  expect(found).toMatchObject(expected);
});

test('what nobody keeps, and all rights of the engine, are cautions', () => {
  const card = permissionCard({
    ...NOTHING,
    permission_profile: { privileged: true, network: { outbound: { allow_host: ['a.b'] } } },
    runtime: { kind: 'sandbox' },
  });
  expect(card[0]).toMatchObject({ label: 'Runs in', text: 'sandbox' });
  const cautions = card.filter(({ tone }) => tone === 'caution');
  expect(cautions.map(({ key }) => key)).toEqual(['privileged', 'not_enforced']);
  expect(cautions.at(-1)?.text).toMatch(/hosts and ports /);
});

test.each([
  [{}, 'any public host, and only through a proxy, because slirp4netns is not installed'],
  [{ mode: 'host' }, 'any host'],
  [{ mode: 'none' }, 'none'],
])('where open networks are narrow, that of %j is "%s"', (network, text) => {
  const runtime = { kind: 'sandbox', narrow_network: 'slirp4netns is not installed' };
  expect(textsOf({ permission_profile: { network }, runtime })['network']).toBe(text);
});

test('whatever a catalogue wishes for, a line for people stays short, and the data has all of it', () => {
  fc.assert(
    fc.property(fc.array(fc.stringMatching(/^[a-z]{1,400}$/), { maxLength: 60 }), (names) => {
      const read = [...new Set(names)].map((name) => `/${name}`);
      const [, ...rest] = permissionCard({
        ...NOTHING,
        runtime: { kind: 'x' },
        permission_profile: { read },
      });
      expect(rest[0]?.text.length).toBeLessThan(5000);
      expect(rest[0]?.values).toEqual(read);
    }),
  );
});
