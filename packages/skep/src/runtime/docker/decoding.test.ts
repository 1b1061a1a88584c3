import { describe, expect, test } from 'vitest';
import type { Limits } from '../../permissions/limits.ts';
import type { WorkloadSpec } from '../runtime.ts';
import { containerBody } from './container-body.ts';
import { observedContainer, observedImage, observedNetworks } from './observed.ts';
import { progressError, progressLine, PullProgress } from './progress.ts';

const spec: WorkloadSpec = {
  name: 'w',
  reference: 'image:1',
  args: ['--x', 'a b'],
  env: { A: 'b=c' },
  labels: { 'skep.managed': 'false', team: 't' },
  stdio: true,
  mounts: [{ source: '/src', target: '/dst', readOnly: true }],
  network: 'bridge',
  ports: [
    { hostIp: '127.0.0.1', hostPort: 8080, containerPort: 80 },
    { hostIp: '::1', hostPort: 8081, containerPort: 80 },
  ],
  privileged: false,
};

describe('containerBody', () => {
  test('names a user by numbers, because an image need not know the names', () => {
    const body = (user?: string) => containerBody({ ...spec, ...(user && { user }) }, { podman: false });
    expect(body('root')).toHaveProperty('User', '0:0');
    expect(body('1234')).toHaveProperty('User', '1234:1234');
    expect(body('1234:5')).toHaveProperty('User', '1234:5');
    expect(body()).not.toHaveProperty('User');
  });

  test('drops every capability, forbids new privileges, bounds processes, and leaves restarts to Skep', () => {
    expect(containerBody(spec, { podman: false })).toMatchObject({
      Tty: false,
      OpenStdin: true,
      StdinOnce: false,
      HostConfig: {
        CapDrop: ['ALL'],
        SecurityOpt: expect.arrayContaining(['no-new-privileges']),
        PidsLimit: 512,
        Init: true,
        RestartPolicy: { Name: 'no' },
        Privileged: false,
      },
    });
    expect(containerBody(spec, { podman: false })).not.toHaveProperty('HostConfig.CapAdd');
  });

  test('bounds memory without swap, processes and the length of a file by default', () => {
    const body = (limits?: Limits): object =>
      containerBody({ ...spec, ...(limits && { limits }) }, { podman: false });
    const core = { Name: 'core', Soft: 0, Hard: 0 };
    const GIB = 1024 ** 3;
    const file = { Name: 'fsize', Soft: 4 * GIB, Hard: 4 * GIB };
    expect(body()).toMatchObject({
      HostConfig: {
        Memory: 2 * GIB,
        MemorySwap: 2 * GIB,
        NanoCpus: 0,
        PidsLimit: 512,
        Ulimits: [core, file],
      },
    });
    expect(body({ memory: 0, pids: 0, disk: 0, cpus: 0.5 })).toMatchObject({
      HostConfig: { Memory: 0, MemorySwap: 0, NanoCpus: 500_000_000, PidsLimit: -1, Ulimits: [core] },
    });
  });

  test('writes nowhere but in memory, its data and its mounts where that is asked for', () => {
    const body = (changes: Partial<WorkloadSpec>): object =>
      containerBody({ ...spec, ...changes }, { podman: false });
    expect(body({})).not.toHaveProperty('HostConfig.ReadonlyRootfs');
    const limits = { memory: 1024, pids: 0, disk: 0, cpus: 0 };
    const data = ['/var/tmp'];
    const options = 'rw,exec,nosuid,nodev,mode=1777';
    expect(body({ readOnly: true, limits, data })).toHaveProperty('HostConfig.ReadonlyRootfs', true);
    expect(body({ readOnly: true, limits, data })).toHaveProperty('HostConfig.Tmpfs', {
      '/tmp': `${options},size=512`,
      '/run': `${options},size=128`,
    });
    expect(body({ readOnly: true, limits: { ...limits, memory: 0 } })).toHaveProperty('HostConfig.Tmpfs', {
      '/tmp': options,
      '/var/tmp': options,
      '/run': options,
    });
  });

  test('gives up the labels of SELinux for mounts alone', () => {
    const options = (changes: Partial<WorkloadSpec>): unknown =>
      containerBody({ ...spec, ...changes }, { podman: false });
    const without = { HostConfig: { SecurityOpt: ['no-new-privileges'] } };
    const withMounts = { HostConfig: { SecurityOpt: ['no-new-privileges', 'label:disable'] } };
    expect(options({ mounts: [] })).toMatchObject(without);
    expect(options({})).toMatchObject(withMounts);
    expect(options({ mounts: [], data: ['/data'] })).toMatchObject(withMounts);
  });

  test.each([true, false])('has standard streams of its own over stdio alone: %s', (stdio) => {
    expect(containerBody({ ...spec, stdio }, { podman: false })).toMatchObject({
      Tty: false,
      AttachStdin: stdio,
      AttachStdout: stdio,
      AttachStderr: stdio,
      OpenStdin: stdio,
    });
  });

  test('has all rights of the engine only where the profile says so', () => {
    for (const privileged of [true, false]) {
      expect(containerBody({ ...spec, privileged }, { podman: false })).toMatchObject({
        HostConfig: { Privileged: privileged, CapDrop: ['ALL'] },
      });
    }
  });

  test('leaves a port of the machine that nobody named to the engine', () => {
    const ports = [{ hostIp: '127.0.0.1', hostPort: 0, containerPort: 80 }];
    expect(containerBody({ ...spec, ports }, { podman: false })).toMatchObject({
      HostConfig: { PortBindings: { '80/tcp': [{ HostIp: '127.0.0.1', HostPort: '0' }] } },
    });
  });

  test('covers mounts with what hides a part of them, after them', () => {
    const overlays = [{ source: '/empty', target: '/dst/.env', readOnly: true }];
    expect(containerBody({ ...spec, overlays }, { podman: false })).toMatchObject({
      HostConfig: {
        Mounts: [
          { Type: 'bind', Source: '/src', Target: '/dst', ReadOnly: true },
          { Type: 'bind', Source: '/empty', Target: '/dst/.env', ReadOnly: true },
        ],
      },
    });
  });

  test('passes arguments, environment, mounts and ports on', () => {
    expect(containerBody(spec, { podman: false })).toMatchObject({
      Image: 'image:1',
      Cmd: ['--x', 'a b'],
      Env: ['A=b=c'],
      ExposedPorts: { '80/tcp': {} },
      HostConfig: {
        Mounts: [{ Type: 'bind', Source: '/src', Target: '/dst', ReadOnly: true }],
        PortBindings: {
          '80/tcp': [
            { HostIp: '127.0.0.1', HostPort: '8080' },
            { HostIp: '::1', HostPort: '8081' },
          ],
        },
      },
    });
  });

  test('marks the container as ours whatever the labels say', () => {
    expect(containerBody(spec, { podman: false })).toMatchObject({
      Labels: { 'skep.managed': 'true', 'skep.name': 'w', team: 't' },
    });
  });

  test('bounds the log, except on Podman, which has other drivers', () => {
    expect(containerBody(spec, { podman: false })).toMatchObject({
      HostConfig: { LogConfig: { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '2' } } },
    });
    expect(containerBody(spec, { podman: true })).not.toHaveProperty('HostConfig.LogConfig');
  });

  test("keeps the image's own command when there are no arguments", () => {
    expect(containerBody({ ...spec, args: [] }, { podman: false })).not.toHaveProperty('Cmd');
  });

  test.each([
    ['none', 'none'],
    ['host', 'host'],
    ['my-net', 'my-net'],
  ])('puts network "%s" on %s', (network, mode) => {
    const body = containerBody({ ...spec, network }, { podman: false });
    expect(body).toMatchObject({ HostConfig: { NetworkMode: mode } });
    expect(body).not.toHaveProperty('NetworkingConfig');
  });

  test('names a network that was made for it by its id only, and says that it has one', () => {
    const network = { id: 'abc123', name: 'skep-w' };
    const body = containerBody(spec, { podman: false, network });
    expect(body).toMatchObject({
      HostConfig: { NetworkMode: 'abc123' },
      NetworkingConfig: { EndpointsConfig: { abc123: { NetworkID: 'abc123' } } },
      Labels: { 'skep.network': 'skep-w' },
    });
    expect(body).not.toHaveProperty('NetworkingConfig.EndpointsConfig.abc123.IPAMConfig');
  });
});

describe('observedContainer', () => {
  const body = (State: object) => ({
    Name: '/w',
    Created: '2026-01-01T00:00:00Z',
    State: { Running: false, ExitCode: 0, StartedAt: '0001-01-01T00:00:00Z', ...State },
    Config: { Image: 'i', Labels: null },
  });

  test.each([
    [{ Status: 'created' }, { state: 'created' }],
    [{ Status: 'configured' }, { state: 'created' }],
    [{ Status: 'running', Running: true }, { state: 'running' }],
    [{ Status: 'paused', Running: true }, { state: 'running' }],
    [{ Status: 'restarting', Running: true }, { state: 'running' }],
    [
      { Status: 'removing', ExitCode: 0 },
      { state: 'exited', exitCode: 0 },
    ],
    [
      { Status: 'exited', ExitCode: 137, OOMKilled: true },
      { state: 'exited', exitCode: 137, exceeded: 'memory' },
    ],
    [
      { Status: 'exited', ExitCode: 3 },
      { state: 'exited', exitCode: 3 },
    ],
    [
      { Status: 'dead', ExitCode: 137 },
      { state: 'exited', exitCode: 137 },
    ],
  ])('%j', (state, expected) => {
    const observed = observedContainer(body(state));
    expect(observed).toMatchObject({ name: 'w', labels: {}, ...expected });
    expect(observed.startedAt).toBeUndefined();
  });
});

test('observedImage lists TCP ports only, in order', () => {
  const ExposedPorts = { '9000/tcp': {}, '53/udp': {}, '80': {} };
  const image = { Id: 'x', Config: { ExposedPorts, Volumes: { '/var/lib/x': {}, '/data': {} } } };
  const volumes = ['/data', '/var/lib/x'];
  expect(observedImage(image)).toEqual({
    id: 'x',
    exposedPorts: [80, 9000],
    labels: {},
    volumes,
    asRoot: true,
  });
  expect(observedImage({ Id: 'x', Config: { ExposedPorts: null } }).exposedPorts).toEqual([]);
});

test.each([
  ['', true],
  ['root', true],
  ['0:0', true],
  ['0', true],
  ['root:users', true],
  ['node', false],
  ['1000:0', false],
  ['rooted', false],
])('observedImage knows root by name and number: %j', (User, asRoot) => {
  expect(observedImage({ Id: 'x', Config: { User } })).toMatchObject({ asRoot });
});

test('observedNetworks puts the oldest first, to the nanosecond, whatever the time zone and the order', () => {
  const network = (Id: string, Created: string) => ({ Id, Name: 'n', Created, Labels: null });
  const ordered = [
    network('e', '2026-01-01T00:00:00.5Z'),
    network('d', '2026-01-01T02:00:00.500000001+02:00'),
    network('b', '2026-01-01T00:00:00.50000012Z'),
    network('c', '2026-01-01T00:00:00.50000012Z'),
    network('a', '2026-01-01T00:00:01Z'),
  ];
  const ids = (body: object) => observedNetworks(body).map((one) => one.id);
  expect(ids(ordered)).toEqual(['e', 'd', 'b', 'c', 'a']);
  expect(ids(ordered.toReversed())).toEqual(['e', 'd', 'b', 'c', 'a']);
});

describe('progress', () => {
  test('finds the failure inside a stream that began with 200', () => {
    expect(progressError(progressLine({ errorDetail: { message: 'm', code: 1 }, error: 'e' }))).toBe('m');
    expect(progressError(progressLine({ error: 'e' }))).toBe('e');
    expect(progressError(progressLine({ stream: 'Step 1' }))).toBeUndefined();
    expect(progressLine('nonsense')).toEqual({});
  });

  test('adds layers up', () => {
    const progress = new PullProgress();
    const at = (id: string, current: number) =>
      progress.take({ id, status: 'Downloading', progressDetail: { current, total: 2_000_000 } });
    expect(at('a', 500_000)).toBe('0.5 of 2.0 MB');
    expect(at('b', 500_000)).toBe('1.0 of 4.0 MB');
    expect(progress.take({ id: 'a', status: 'Download complete' })).toBe('2.5 of 4.0 MB');
    expect(progress.take({ id: 'a', status: 'Extracting' })).toBeUndefined();
    expect(progress.take({ status: 'Digest: x' })).toBe('Digest: x');
  });
});
