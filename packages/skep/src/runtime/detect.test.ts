import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Finding } from './environment.ts';
import { selectRuntime } from './detect.ts';
import { findEngine, type EngineSearch } from './docker/find-engine.ts';
import { endpointText, type Endpoint } from './docker/endpoint.ts';
import type { Bubblewrap } from './sandbox/confine.ts';
import { unlessUnavailable } from './sandbox/bubblewrap.ts';

interface Machine {
  readonly env?: Record<string, string>;
  /** Addresses where an engine answers. */
  readonly answering?: readonly string[];
  /** Sockets that exist. */
  readonly sockets?: readonly string[];
  readonly files?: Record<string, string>;
  readonly bubblewrap?: boolean;
}

type Selection =
  | { readonly kind: 'docker'; readonly endpoint: Endpoint }
  | { readonly kind: 'sandbox'; readonly bubblewrap: Bubblewrap };

function select(options: Machine): Promise<Selection> {
  const answering = options.answering ?? [];
  const sockets = options.sockets ?? answering.map((address) => address.replace('unix://', ''));
  const env = options.env ?? {};
  const search: EngineSearch = {
    env,
    home: '/home/me',
    readText: (file) => Promise.resolve(options.files?.[file]),
    exists: (path) => Promise.resolve(sockets.includes(path)),
    list: () => Promise.resolve([]),
    hasProgram: () => false,
    ping: (endpoint) =>
      answering.includes(endpointText(endpoint))
        ? Promise.resolve()
        : Promise.reject(
            new SkepError('runtime/engine-unreachable', { message: `${endpointText(endpoint)} is dead` }),
          ),
  };
  const bubblewrap = (): Promise<Bubblewrap> =>
    options.bubblewrap
      ? Promise.resolve(BUBBLEWRAP)
      : Promise.reject(
          new SkepError('runtime/sandbox-unavailable', { message: 'bwrap is missing', hint: 'install it' }),
        );
  return selectRuntime<Selection>(
    (kind) =>
      kind === 'docker'
        ? as(findEngine(search), (endpoint) => ({ kind: 'docker', endpoint }))
        : as(unlessUnavailable(bubblewrap()), (found) => ({ kind: 'sandbox', bubblewrap: found })),
    env['SKEP_RUNTIME'],
  );
}

async function as<Found>(
  finding: Promise<Finding<Found>>,
  make: (found: Found) => Selection,
): Promise<Finding<Selection>> {
  const known = await finding;
  return 'found' in known ? { found: make(known.found) } : known;
}

const BUBBLEWRAP: Bubblewrap = {
  program: '/usr/bin/bwrap',
  version: '0.8.0',
  locksUserns: true,
  setpriv: undefined,
  architecture: 'x64',
  inherited: [],
  network: 'slirp4netns is not installed',
};
const DOCKER = 'unix:///var/run/docker.sock';
const PODMAN = 'unix:///var/run/podman/podman.sock';
const contextFile = (name: string) =>
  `/home/me/.docker/contexts/meta/${createHash('sha256').update(name).digest('hex')}/meta.json`;
const withContext = (name: string, host: string) => ({
  '/home/me/.docker/config.json': JSON.stringify({ currentContext: name }),
  [contextFile(name)]: JSON.stringify({ Endpoints: { docker: { Host: host } } }),
});

describe('selectRuntime picks', () => {
  test.each<[string, Machine, string]>([
    ['the Docker socket when it answers', { answering: [DOCKER], bubblewrap: true }, DOCKER],
    ['Podman before Docker', { answering: [DOCKER, PODMAN] }, PODMAN],
    [
      'the next socket when one is dead',
      { answering: [DOCKER], sockets: ['/var/run/podman/podman.sock', '/var/run/docker.sock'] },
      DOCKER,
    ],
    [
      'Colima in the home directory',
      { answering: ['unix:///home/me/.colima/default/docker.sock'] },
      'unix:///home/me/.colima/default/docker.sock',
    ],
    [
      'an override before everything',
      {
        env: { SKEP_COLIMA_SOCKET: '/c', DOCKER_HOST: 'tcp://h:1' },
        answering: ['unix:///c', 'tcp://h:1', DOCKER],
      },
      'unix:///c',
    ],
    [
      'the Podman override before the Docker one',
      { env: { SKEP_DOCKER_SOCKET: '/d', SKEP_PODMAN_SOCKET: '/p' }, answering: ['unix:///d', 'unix:///p'] },
      'unix:///p',
    ],
    [
      'DOCKER_HOST before the context',
      {
        env: { DOCKER_HOST: 'tcp://h:2375' },
        answering: ['tcp://h:2375', DOCKER],
        files: withContext('x', DOCKER),
      },
      'tcp://h:2375',
    ],
    [
      'the current context before the sockets',
      { answering: ['unix:///run/mine.sock', DOCKER], files: withContext('mine', 'unix:///run/mine.sock') },
      'unix:///run/mine.sock',
    ],
    [
      'the sockets for the default context',
      { answering: [DOCKER], files: withContext('default', 'ssh://x') },
      DOCKER,
    ],
    [
      'the engine that is forced',
      { env: { SKEP_RUNTIME: 'docker' }, answering: [DOCKER], bubblewrap: true },
      DOCKER,
    ],
  ])('%s', async (_what, options, expected) => {
    const selection = await select(options);
    expect(selection.kind === 'docker' && endpointText(selection.endpoint)).toBe(expected);
  });

  test.each<[string, Machine]>([
    ['without an engine', { bubblewrap: true }],
    ['when it is forced', { env: { SKEP_RUNTIME: 'sandbox' }, answering: [DOCKER], bubblewrap: true }],
    [
      'when the engine of the context is dead',
      { answering: [DOCKER], bubblewrap: true, files: withContext('x', 'unix:///gone') },
    ],
  ])('the sandbox %s', async (_what, options) => {
    expect(await select(options)).toEqual({ kind: 'sandbox', bubblewrap: BUBBLEWRAP });
  });
});

describe('selectRuntime refuses', () => {
  test.each<[string, Machine, string, RegExp]>([
    [
      'an unknown kind',
      { env: { SKEP_RUNTIME: 'vm' } },
      'runtime/unknown',
      /"vm".*docker, kubernetes, sandbox/,
    ],
    [
      'when nothing works, naming each attempt',
      { sockets: ['/var/run/docker.sock'] },
      'runtime/unavailable',
      /docker\.sock is dead.*bwrap is missing; install it.*not there: .*podman\.sock/,
    ],
    [
      'a dead override instead of another engine',
      { env: { SKEP_DOCKER_SOCKET: '/d' }, answering: [DOCKER] },
      'runtime/unavailable',
      /SKEP_DOCKER_SOCKET: unix:\/\/\/d is dead/,
    ],
    [
      'a dead DOCKER_HOST instead of the sandbox',
      { env: { DOCKER_HOST: 'unix:///gone' }, answering: [DOCKER], bubblewrap: true },
      'runtime/unavailable',
      /DOCKER_HOST: unix:\/\/\/gone is dead/,
    ],
    [
      'an ssh DOCKER_HOST with the reason',
      { env: { DOCKER_HOST: 'ssh://me@h' } },
      'runtime/unavailable',
      /DOCKER_HOST: .*ssh connections are not supported/,
    ],
    [
      'a context without a file',
      { env: { DOCKER_CONTEXT: 'lost' }, answering: [DOCKER] },
      'runtime/unavailable',
      /docker context "lost"/,
    ],
    [
      'the sandbox in place of a forced engine',
      { env: { SKEP_RUNTIME: 'docker' }, bubblewrap: true },
      'runtime/unavailable',
      /runtime "docker" is not available/,
    ],
    [
      'a forced sandbox without bubblewrap',
      { env: { SKEP_RUNTIME: 'sandbox' }, answering: [DOCKER] },
      'runtime/sandbox-unavailable',
      /bwrap is missing/,
    ],
  ])('%s', async (_what, options, code, message) => {
    await expect(select(options)).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    });
  });

  test('a dead engine of a variable with the way out that helps', async () => {
    const dead = select({ env: { DOCKER_HOST: 'unix:///gone' }, bubblewrap: true });
    await expect(dead).rejects.toMatchObject({ hint: expect.stringContaining('unset the variable') });
  });
});
