import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import type { PortBinding } from '../runtime.ts';
import { coverInherited } from './inherited-descriptors.ts';
import type { NetworkTools } from './own-network.ts';
import type { Gate, WorkloadPlaces } from './places.ts';

/** Addresses inside: slirp4netns' own. */
const RESOLVER = '10.0.2.3';

/** What name resolution reads in a network that slirp4netns connects: the resolver there, and no name of this machine. */
export const SLIRP_FILES: Readonly<Record<string, string>> = {
  '/etc/resolv.conf': `nameserver ${RESOLVER}\n`,
  '/etc/hosts': '127.0.0.1 localhost skep\n::1 localhost\n',
  '/etc/nsswitch.conf': 'hosts: files dns\n',
};

const { O_DIRECTORY, O_NONBLOCK, O_RDONLY, O_RDWR } = constants;

export interface Connecting {
  readonly tools: Pick<NetworkTools, 'unshare'>;
  /** slirp4netns(1). */
  readonly slirp: string;
  readonly asRoot: boolean;
  readonly places: WorkloadPlaces;
  /** A process in the namespace. */
  readonly pid: number;
  readonly inherited: readonly number[];
}

/**
 * Connects a workload's network namespace to the outside, without the loopback of this machine. The process that does it
 * lives as long as anything holds the workload's life pipe, whatever becomes of this program. Answers with the pipe that it
 * holds itself, so that its end is noticed. Throws `runtime/start-failed`.
 */
export async function connectNetwork(connecting: Connecting): Promise<readonly Gate[]> {
  // Its own confinement needs mounts and filters that some containers do not allow. What reads a hostile server's packets
  // does so as root only when it is confined.
  const started =
    (await startSlirp(connecting, ['--enable-sandbox', '--enable-seccomp'])) ||
    (!connecting.asRoot && (await startSlirp(connecting, [])));
  if (started) return ['gate'];
  throw failed(
    `slirp4netns ended before the network was up${connecting.asRoot ? ', and as root it must be able to confine itself' : ''}`,
    `start it again${connecting.asRoot ? ', run skep as an ordinary user' : ''}, or run it with --network host`,
  );
}

const READY_AT = 3;
const EXIT_AT = 4;

/** True when it is ready; false when it ended instead. */
async function startSlirp(
  { tools, slirp, asRoot, places, pid, inherited }: Connecting,
  hardened: readonly string[],
): Promise<boolean> {
  using opened = new DisposableStack();
  const life = opened.adopt(openSync(places.life, O_RDONLY | O_NONBLOCK), closeSync);
  const gate = opened.adopt(openSync(places.gate, O_RDWR), closeSync);
  const devNull = opened.adopt(openSync('/dev/null', 'r+'), closeSync);
  const options = ['--configure', '--disable-host-loopback', '--mtu=65520', ...hardened];
  const ends = [`--ready-fd=${READY_AT}`, `--exit-fd=${EXIT_AT}`, `--api-socket=${API_SOCKET}`];
  // Confining itself, slirp4netns unmounts what it sees. As root it would do so for the whole machine: below every
  // shared mount, where a container engine has its file systems.
  const view = asRoot ? [tools.unshare, '--mount', '--propagation', 'slave', '--'] : [];
  const [program, ...args] = [...view, slirp, ...options, ...ends, String(pid), 'tap0'];
  const child = spawn(program, args, {
    // A socket's path must be short, and this directory's may be long.
    cwd: places.directory,
    env: {},
    detached: true,
    // What it says grows with what the workload sends, so it goes nowhere.
    stdio: coverInherited(['ignore', 'ignore', 'ignore', 'pipe', life, gate], inherited, devNull),
  });
  child.unref();
  return saysReady(child);
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

/** Leads a port of this machine to the workload's loopback (`add_hostfwd` of slirp4netns(1)). Throws `runtime/start-failed`. */
export async function forwardPort(places: WorkloadPlaces, port: PortBinding): Promise<void> {
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
  const answer = await text(socket).then(parsedJson, () => undefined);
  if (answer === undefined)
    throw failed(`port ${port.hostPort} of ${port.hostIp} cannot be forwarded: slirp4netns has ended`);
  const error = isRecord(answer) ? answer['error'] : undefined;
  if (error === undefined) return;
  const why =
    isRecord(error) && typeof error['desc'] === 'string' ? error['desc'] : 'slirp4netns gives no reason';
  throw failed(`port ${port.hostPort} of ${port.hostIp} cannot be forwarded: ${why}`);
}

const failed = (message: string, hint?: string) => new SkepError('runtime/start-failed', { message, hint });
