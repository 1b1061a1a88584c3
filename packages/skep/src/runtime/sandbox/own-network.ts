import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, closeSync, constants, openSync } from 'node:fs';
import { connect } from 'node:net';
import { readlink, realpath } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { z } from 'zod';
import type { PortBinding } from '../runtime.ts';
import { findProgram, type Environment } from './find-program.ts';
import { coverInherited } from './inherited-descriptors.ts';
import type { WorkloadPlaces } from './places.ts';

/** The programs that make a network of its own for a workload. */
export interface NetworkTools {
  readonly unshare: string;
  readonly slirp: string;
  /** ip(8). */
  readonly ip: string;
}

/** Addresses inside: slirp4netns' own. */
const RESOLVER = '10.0.2.3';

/** What name resolution reads in a network of its own: the resolver there, and no name of this machine. */
export const NETWORK_FILES: Readonly<Record<string, string>> = {
  '/etc/resolv.conf': `nameserver ${RESOLVER}\n`,
  '/etc/hosts': '127.0.0.1 localhost skep\n::1 localhost\n',
  '/etc/nsswitch.conf': 'hosts: files dns\n',
};

const { O_DIRECTORY, O_NONBLOCK, O_RDONLY, R_OK, W_OK } = constants;
const PROOF_MS = 5000;

/** The tools, or why a workload cannot have a network of its own here. Whether they work is not tried. */
export function findNetworkTools(env: Environment): NetworkTools | string {
  const names = ['unshare', 'slirp4netns', 'ip'];
  const [unshare, slirp, ip] = names.map((name) => findProgram(name, env));
  if (slirp === undefined) return 'slirp4netns is not installed';
  if (unshare === undefined) return 'unshare is not installed';
  if (ip === undefined) return 'ip (iproute2) is not installed';
  try {
    accessSync('/dev/net/tun', R_OK | W_OK);
  } catch {
    return '/dev/net/tun cannot be opened';
  }
  return { unshare, slirp, ip };
}

export const NO_NAMESPACES = 'this user may not make network namespaces with routes of their own';

/** Tries it. */
export async function makesOwnNetwork(tools: NetworkTools, asRoot: boolean): Promise<boolean> {
  const [program = '', ...args] = inOwnNetwork(tools, asRoot, ['/bin/true']);
  const child = spawn(program, args, { stdio: 'ignore', timeout: PROOF_MS, env: {} });
  return once(child, 'exit').then(
    ([code]) => code === 0,
    () => false,
  );
}

/**
 * The command in a network namespace without any connection. There the kernel lets what arrives from outside reach
 * loopback, so that a server which listens only there can be reached through a forwarded port. It would let loopback
 * addresses out as well, by a socket that is bound to the interface, and slirp4netns would take them for the machine's
 * own; so outside of loopback they lead nowhere.
 */
export function inOwnNetwork(
  { unshare, ip }: NetworkTools,
  asRoot: boolean,
  command: readonly string[],
): readonly string[] {
  const user = asRoot ? [] : ['--user', '--map-root-user'];
  return [unshare, ...user, '--net', '--', '/bin/sh', '-c', ENTER, ip, ...command];
}

const ENTER = `
echo 1 >/proc/sys/net/ipv4/conf/all/route_localnet &&
"$0" route add blackhole 127.0.0.0/8 &&
exec "$@"`;

/** Whether a process that was started by `inOwnNetwork` has its network, and whose it is can be told inside. */
export async function hasOwnNetwork(pid: number, { unshare }: NetworkTools): Promise<boolean> {
  try {
    const [own, its] = await Promise.all([readlink('/proc/self/ns/net'), readlink(`/proc/${pid}/ns/net`)]);
    // Until unshare(1) has started the next program, users have no numbers inside yet.
    return own !== its && (await readlink(`/proc/${pid}/exe`)) !== (await realpath(unshare));
  } catch {
    return false;
  }
}

export interface Connecting {
  readonly tools: NetworkTools;
  readonly asRoot: boolean;
  readonly places: WorkloadPlaces;
  /** A process in the namespace. */
  readonly pid: number;
  readonly ports: readonly PortBinding[];
  readonly inherited: readonly number[];
}

/**
 * Connects a workload's network namespace to the outside, without the loopback of this machine, and forwards the ports.
 * The process that does it lives as long as anything holds the workload's life pipe, whatever becomes of this program.
 * Throws `runtime/start-failed`.
 */
export async function connectNetwork(connecting: Connecting): Promise<void> {
  // Its own confinement needs mounts and filters that some containers do not allow. What reads a hostile server's packets
  // does so as root only when it is confined.
  const started =
    (await startSlirp(connecting, ['--enable-sandbox', '--enable-seccomp'])) ??
    (connecting.asRoot ? undefined : await startSlirp(connecting, []));
  if (started === undefined) {
    throw failed(
      `slirp4netns ended before the network was up${connecting.asRoot ? ', and as root it must be able to confine itself' : ''}`,
      `start it again${connecting.asRoot ? ', run skep as an ordinary user' : ''}, or run it with --network host`,
    );
  }
  try {
    for (const port of connecting.ports) await forward(connecting.places, port);
  } catch (error) {
    started.kill('SIGKILL');
    throw error;
  }
}

const READY_AT = 3;
const EXIT_AT = 4;

/** Undefined when it ended instead of getting ready. */
async function startSlirp(
  { tools, asRoot, places, pid, inherited }: Connecting,
  hardened: readonly string[],
): Promise<ChildProcess | undefined> {
  using opened = new DisposableStack();
  const life = opened.adopt(openSync(places.life, O_RDONLY | O_NONBLOCK), closeSync);
  const devNull = opened.adopt(openSync('/dev/null', 'r+'), closeSync);
  const options = ['--configure', '--disable-host-loopback', '--mtu=65520', ...hardened];
  const ends = [`--ready-fd=${READY_AT}`, `--exit-fd=${EXIT_AT}`, `--api-socket=${API_SOCKET}`];
  // Confining itself, slirp4netns unmounts what it sees. As root it would do so for the whole machine: below every
  // shared mount, where a container engine has its file systems.
  const view = asRoot ? [tools.unshare, '--mount', '--propagation', 'slave', '--'] : [];
  const [program, ...args] = [...view, tools.slirp, ...options, ...ends, String(pid), 'tap0'];
  const child = spawn(program, args, {
    // A socket's path must be short, and this directory's may be long.
    cwd: places.directory,
    env: {},
    detached: true,
    // What it says grows with what the workload sends, so it goes nowhere.
    stdio: coverInherited(['ignore', 'ignore', 'ignore', 'pipe', life], inherited, devNull),
  });
  child.unref();
  return (await saysReady(child)) ? child : undefined;
}

async function saysReady(child: ChildProcess): Promise<boolean> {
  const ready = child.stdio[READY_AT] as Readable | null | undefined;
  if (!ready) return false;
  try {
    return await Promise.race([once(ready, 'data').then(() => true), once(child, 'exit').then(() => false)]);
  } catch {
    return false;
  } finally {
    ready.destroy();
  }
}

const API_SOCKET = 'network.sock';
const answerShape = z.object({ error: z.object({ desc: z.string() }).optional() });

/** `add_hostfwd` of slirp4netns(1), to the workload's loopback. */
async function forward(places: WorkloadPlaces, port: PortBinding): Promise<void> {
  const command = {
    execute: 'add_hostfwd',
    arguments: {
      proto: 'tcp',
      host_addr: port.hostIp,
      host_port: port.hostPort,
      guest_addr: '127.0.0.1',
      guest_port: port.containerPort,
    },
  };
  using opened = new DisposableStack();
  const directory = opened.adopt(openSync(places.directory, O_RDONLY | O_DIRECTORY), closeSync);
  // A socket's path must be short, and the directory's may be long.
  const api = path.join('/proc/self/fd', String(directory), API_SOCKET);
  const socket = connect({ path: api, allowHalfOpen: true });
  socket.end(JSON.stringify(command));
  const { error } = answerShape.parse(JSON.parse(await text(socket)));
  if (error) throw failed(`port ${port.hostPort} of ${port.hostIp} cannot be forwarded: ${error.desc}`);
}

const failed = (message: string, hint?: string) => new SkepError('runtime/start-failed', { message, hint });
