import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { readlink, realpath } from 'node:fs/promises';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { EgressPolicy } from '../../egress/policy.ts';
import type { WorkloadSpec } from '../runtime.ts';
import { findProgram, type Environment } from './find-program.ts';

/** The programs that make a network of its own for a workload. */
export interface NetworkTools {
  readonly unshare: string;
  readonly nsenter: string;
  /** ip(8). */
  readonly ip: string;
  /** slirp4netns(1), which leads a network to all that the machine reaches; or why it cannot. */
  readonly slirp: { readonly program: string } | { readonly missing: string };
}

/** All that are there. */
export function programsOf({ slirp, unshare, nsenter, ip }: NetworkTools): readonly string[] {
  return [unshare, nsenter, ip, ...('program' in slirp ? [slirp.program] : [])];
}

/** Leads to all that the machine reaches. */
interface ConnectedNetwork {
  readonly kind: 'connected';
  readonly tools: NetworkTools;
  /** slirp4netns(1). */
  readonly slirp: string;
}

/** Has a gateway as its only way out. */
export interface GatedNetwork {
  readonly kind: 'gated';
  readonly tools: NetworkTools;
  readonly policy: EgressPolicy;
  /** The person wanted it so; otherwise nothing else can be had here, and whoever reaches its ports is nobody's business. */
  readonly isolated: boolean;
}

export type OwnNetwork = ConnectedNetwork | GatedNetwork;

/**
 * The network that a workload gets of its own; undefined for none, or that of the machine. Throws
 * `runtime/sandbox-unavailable` where it cannot be made: then a workload never gets the machine's instead.
 */
export function ownNetworkOf(
  { name, network, isolation }: Pick<WorkloadSpec, 'name' | 'network' | 'isolation'>,
  tools: NetworkTools | string,
): OwnNetwork | undefined {
  if (isolation === undefined && network !== 'bridge') return undefined;
  if (typeof tools === 'string') throw cannotBeMade(name, tools, isolation !== undefined);
  if (isolation !== undefined) return { kind: 'gated', tools, policy: isolation, isolated: true };
  if ('program' in tools.slirp) return { kind: 'connected', tools, slirp: tools.slirp.program };
  const lists = { hosts: [], ports: [], inbound: [] };
  const policy = { workload: name, allowAll: true, ...lists, runtimeGateway: false };
  return { kind: 'gated', tools, policy, isolated: false };
}

function cannotBeMade(name: string, why: string, isolated: boolean): SkepError {
  const how = why === NO_NAMESPACES ? ALLOW_HINT : 'install it';
  return new SkepError('runtime/sandbox-unavailable', {
    message: `"${name}" cannot have a network of its own here: ${why}`,
    hint: isolated ? how : `${how}; or give --network host, if it may use that of this machine`,
  });
}

const ALLOW_HINT =
  'allow it (sysctl kernel.unprivileged_userns_clone=1 or kernel.apparmor_restrict_unprivileged_userns=0)';

const PROOF_MS = 5000;

/** The tools, or why a workload cannot have a network of its own here. Whether they work is not tried. */
export function findNetworkTools(env: Environment): NetworkTools | string {
  const [unshare, nsenter, ip] = ['unshare', 'nsenter', 'ip'].map((name) => findProgram(name, env));
  if (unshare === undefined) return 'unshare (util-linux) is not installed';
  if (nsenter === undefined) return 'nsenter (util-linux) is not installed';
  if (ip === undefined) return 'ip (iproute2) is not installed';
  return { unshare, nsenter, ip, slirp: findSlirp(env) };
}

function findSlirp(env: Environment): NetworkTools['slirp'] {
  const program = findProgram('slirp4netns', env);
  if (program === undefined) return { missing: 'slirp4netns is not installed' };
  try {
    accessSync('/dev/net/tun', constants.R_OK | constants.W_OK);
  } catch {
    return { missing: '/dev/net/tun cannot be opened' };
  }
  return { program };
}

export const NO_NAMESPACES = 'this user may not make network namespaces';

/** Tries both kinds. */
export async function makesOwnNetwork(tools: NetworkTools, asRoot: boolean): Promise<boolean> {
  const kinds: readonly OwnNetwork['kind'][] = [
    'gated',
    ...('program' in tools.slirp ? ['connected' as const] : []),
  ];
  return (await Promise.all(kinds.map((kind) => isMade(tools, asRoot, kind)))).every(Boolean);
}

async function isMade(tools: NetworkTools, asRoot: boolean, kind: OwnNetwork['kind']): Promise<boolean> {
  const [program = '', ...args] = inOwnNetwork(tools, { asRoot, kind }, ['/bin/true']);
  const child = spawn(program, args, { stdio: 'ignore', timeout: PROOF_MS, env: {} });
  return once(child, 'exit').then(
    ([code]) => code === 0,
    () => false,
  );
}

/** The command in a network namespace without any connection but, for a gated one, loopback. */
export function inOwnNetwork(
  { unshare, ip }: NetworkTools,
  { asRoot, kind }: { readonly asRoot: boolean; readonly kind: OwnNetwork['kind'] },
  command: readonly string[],
): readonly string[] {
  const user = asRoot ? [] : ['--user', '--map-root-user'];
  return [unshare, ...user, '--net', '--', '/bin/sh', '-c', ENTER[kind], ip, ...command];
}

/**
 * Where names lead in a gated network, for programs that know no proxy: servers that guard against private addresses resolve
 * names themselves, and refuse what is no public one (decision 0291). Nothing leaves that network, whosever the address is.
 */
export const NAMES_LEAD_TO = '1.2.3.4';

const ENTER: Readonly<Record<OwnNetwork['kind'], string>> = {
  /**
   * The kernel lets what arrives from outside reach loopback, so that a server which listens only there can be reached
   * through a forwarded port. It would let loopback addresses out as well, by a socket that is bound to the interface, and
   * slirp4netns would take them for the machine's own; so outside of loopback they lead nowhere.
   */
  connected: `
echo 1 >/proc/sys/net/ipv4/conf/all/route_localnet &&
"$0" route add blackhole 127.0.0.0/8 &&
exec "$@"`,
  /** What opens the sockets of the gateway inside has no rights, and needs the ports of DNS and the web. */
  gated: `
"$0" link set lo up &&
"$0" address add ${NAMES_LEAD_TO}/32 dev lo &&
echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start &&
exec "$@"`,
};

/** The command as it enters the network of a process that was started by `inOwnNetwork`. */
export function insideNetwork(
  { nsenter }: NetworkTools,
  { asRoot, pid }: { readonly asRoot: boolean; readonly pid: number },
  command: readonly string[],
): readonly string[] {
  const user = asRoot ? [] : ['--user', '--preserve-credentials'];
  return [nsenter, '--target', String(pid), ...user, '--net', '--', ...command];
}

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

/** Whether a process that was started by `inOwnNetwork` has come to its command: then the network is ready, too. */
export async function hasEntered(pid: number, command: string): Promise<boolean> {
  try {
    return (await readlink(`/proc/${pid}/exe`)) === (await realpath(command));
  } catch {
    return false;
  }
}
