import path from 'node:path';

export interface SocketCandidate {
  /** Product the path belongs to, for messages. */
  readonly owner: string;
  readonly path: string;
}

export interface UserPlaces {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
}

/** Sockets to try, in order (docs/behaviour/run.md#finding-the-engine). */
export function socketCandidates({ env, home }: UserPlaces): SocketCandidate[] {
  const runtimeDir = env['XDG_RUNTIME_DIR'];
  const inHome = (owner: string, rest: string) => ({ owner, path: path.join(home, rest) });
  return [
    { owner: 'Podman', path: '/var/run/podman/podman.sock' },
    ...(runtimeDir ? [{ owner: 'Podman', path: path.join(runtimeDir, 'podman/podman.sock') }] : []),
    inHome('Podman', '.local/share/containers/podman/machine/podman.sock'),
    { owner: 'Docker', path: '/var/run/docker.sock' },
    ...(runtimeDir ? [{ owner: 'Docker', path: path.join(runtimeDir, 'docker.sock') }] : []),
    inHome('Docker', '.docker/run/docker.sock'),
    inHome('Docker', '.docker/desktop/docker.sock'),
    inHome('Rancher Desktop', '.rd/docker.sock'),
    inHome('OrbStack', '.orbstack/run/docker.sock'),
    inHome('Colima', '.colima/default/docker.sock'),
  ];
}

/** Variables that name a socket; the first one set wins and nothing else is tried. */
export const SOCKET_OVERRIDES = ['SKEP_PODMAN_SOCKET', 'SKEP_DOCKER_SOCKET', 'SKEP_COLIMA_SOCKET'] as const;
