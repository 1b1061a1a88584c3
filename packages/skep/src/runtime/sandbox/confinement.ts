import path from 'node:path';
import type { WorkloadSpec } from '../runtime.ts';
import type { Bubblewrap } from './bubblewrap.ts';
import { APP, NODE } from './package-program.ts';
import type { WorkloadPlaces } from './places.ts';

export interface Confinement {
  readonly bubblewrap: Bubblewrap;
  readonly spec: WorkloadSpec;
  readonly places: WorkloadPlaces;
  /** Host directory of the package tree. */
  readonly tree: string;
  /** Real path of the Node binary. */
  readonly node: string;
}

const HOME = '/home/skep';
/** Unprivileged inside, whoever starts it. */
const UID = '1000';

/**
 * The options of bubblewrap for one workload: nothing of the host is visible but what stands here. They are handed over
 * a pipe, not on the command line, because the environment may hold secrets and any user can read command lines.
 */
export function confinementOptions(confinement: Confinement): string[] {
  const { bubblewrap, spec, places, tree, node } = confinement;
  const network = spec.network !== 'none';
  const groups = [
    ['--unshare-user', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'],
    network ? [] : ['--unshare-net'],
    bubblewrap.locksUserns ? ['--disable-userns'] : [],
    ['--uid', UID, '--gid', UID, '--hostname', 'skep', '--new-session', '--cap-drop', 'ALL'],
    systemMounts(),
    ['--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp', '--dir', '/run', '--tmpfs', HOME],
    ['--ro-bind', places.passwd, '/etc/passwd', '--ro-bind', places.group, '/etc/group'],
    network ? networkFiles() : [],
    ['--ro-bind', node, NODE, '--ro-bind', tree, APP],
    spec.mounts.flatMap((mount) => [mount.readOnly ? '--ro-bind' : '--bind', mount.source, mount.target]),
    ['--chdir', HOME],
    Object.entries(environment(spec)).flatMap(([key, value]) => ['--setenv', key, value]),
  ];
  return groups.flat();
}

/** System software and its loader: what a Node binary or a script with `#!/bin/sh` needs to start. No user's data. */
function systemMounts(): string[] {
  const libraries = ['lib', 'lib32', 'lib64', 'libx32'];
  const readable = ['/usr/bin', ...libraries.map((name) => `/usr/${name}`), '/usr/share/zoneinfo'];
  const loader = [
    '/etc/ld.so.cache',
    '/etc/ld.so.conf',
    '/etc/ld.so.conf.d',
    '/etc/alternatives',
    '/etc/localtime',
  ];
  return [
    ...[...readable, ...loader, '/nix/store'].flatMap((one) => ['--ro-bind-try', one, one]),
    // On systems with a merged /usr these are links to it, and binding follows links.
    ...['bin', ...libraries].flatMap((name) => ['--ro-bind-try', `/${name}`, `/${name}`]),
  ];
}

/** What name resolution and TLS read. */
function networkFiles(): string[] {
  const files = ['/etc/resolv.conf', '/etc/hosts', '/etc/nsswitch.conf', '/etc/gai.conf', '/etc/services'];
  const trust = [
    '/etc/ssl',
    '/etc/pki',
    '/etc/ca-certificates',
    '/usr/share/ca-certificates',
    '/usr/local/share/ca-certificates',
  ];
  return [...files, ...trust].flatMap((one) => ['--ro-bind-try', one, one]);
}

function environment(spec: WorkloadSpec): Record<string, string> {
  return {
    PATH: [path.posix.dirname(NODE), `${APP}/node_modules/.bin`, '/usr/bin', '/bin'].join(':'),
    HOME,
    TMPDIR: '/tmp',
    USER: 'skep',
    LANG: 'C.UTF-8',
    NODE_ENV: 'production',
    ...spec.env,
  };
}

export const PASSWD = `skep:x:${UID}:${UID}::${HOME}:/bin/sh\n`;
export const GROUP = `skep:x:${UID}:\n`;
