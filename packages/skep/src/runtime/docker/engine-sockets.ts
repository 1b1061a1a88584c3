import path from 'node:path';
import type { RuntimeEnvironment } from '../environment.ts';

/** Variables that name a socket; the first one set wins and nothing else is tried. */
export const SOCKET_OVERRIDES: readonly string[] = [
  'SKEP_PODMAN_SOCKET',
  'SKEP_DOCKER_SOCKET',
  'SKEP_COLIMA_SOCKET',
];

export interface SocketPlaces extends Pick<RuntimeEnvironment, 'env' | 'home'> {
  /** Where the engines of the machine have their sockets; `/var/run` unless it is said. */
  readonly machineDir?: string;
}

/** Sockets to try, in order, each with the product that it belongs to (docs/behaviour/run.md#finding-the-engine). */
export function socketCandidates({
  env,
  home,
  machineDir = '/var/run',
}: SocketPlaces): readonly (readonly [string, string])[] {
  const runtimeDir = env['XDG_RUNTIME_DIR'];
  const inHome = (owner: string, rest: string) => [owner, path.join(home, rest)] as const;
  return [
    ['Podman', path.join(machineDir, 'podman/podman.sock')],
    ...(runtimeDir ? [['Podman', path.join(runtimeDir, 'podman/podman.sock')] as const] : []),
    inHome('Podman', '.local/share/containers/podman/machine/podman.sock'),
    // Of its virtual machine on a Mac.
    ...(env['TMPDIR']
      ? [['Podman', path.join(env['TMPDIR'], 'podman/podman-machine-default-api.sock')] as const]
      : []),
    ['Docker', path.join(machineDir, 'docker.sock')],
    ...(runtimeDir ? [['Docker', path.join(runtimeDir, 'docker.sock')] as const] : []),
    inHome('Docker', '.docker/run/docker.sock'),
    inHome('Docker', '.docker/desktop/docker.sock'),
    inHome('Rancher Desktop', '.rd/docker.sock'),
    inHome('OrbStack', '.orbstack/run/docker.sock'),
    inHome('Colima', '.colima/default/docker.sock'),
  ];
}
