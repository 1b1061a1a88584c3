import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, closeSync, constants, openSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { EgressPolicy } from '../../egress/policy.ts';
import type { WorkloadSpec } from '../runtime.ts';
import { findProgram, type Environment } from '../find-program.ts';
import { coverInherited } from './inherited-descriptors.ts';

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
  try {
    using network = await makeNetwork(tools, { asRoot, kind, inherited: [] });
    const [program = '', ...args] = insideNetwork(tools, { asRoot, pid: network.pid }, ['/bin/true']);
    const [code] = await once(spawn(program, args, { stdio: 'ignore', timeout: PROOF_MS, env: {} }), 'exit');
    return code === 0;
  } catch {
    return false;
  }
}

/** A network that lasts as long as anything is in it, or this is not disposed of. */
interface MadeNetwork extends Disposable {
  /** The process that holds it. */
  readonly pid: number;
}

interface Making {
  readonly asRoot: boolean;
  readonly kind: OwnNetwork['kind'];
  /** See `inheritedDescriptors`. */
  readonly inherited: readonly number[];
}

/**
 * Makes a network namespace without any connection but, for a gated one, loopback. What holds it ends with this program.
 * Throws `runtime/start-failed`.
 */
export async function makeNetwork(
  { unshare, ip }: NetworkTools,
  { asRoot, kind, inherited }: Making,
): Promise<MadeNetwork> {
  using opened = new DisposableStack();
  const devNull = opened.adopt(openSync('/dev/null', 'r+'), closeSync);
  const user = asRoot ? [] : ['--user', '--map-root-user'];
  const child = spawn(unshare, [...user, '--net', '--', '/bin/sh', '-c', `${SET_UP[kind]} && ${HOLD}`, ip], {
    cwd: '/',
    env: {},
    detached: true,
    stdio: coverInherited(['pipe', 'pipe', 'pipe'], inherited, devNull),
  });
  const { stdin, stdout, stderr, pid = 0 } = child;
  // Node makes all three, or says that the program could not be started.
  if (!stdin || !stdout || !stderr) throw notMade('it cannot be started');
  const held = opened.adopt(child, () => void stdin.destroy());
  stdin.on('error', () => {});
  const said = text(stderr).catch(() => '');
  const ended = once(held, 'close').then(
    async () => Promise.reject(notMade((await said).trim() || 'it gave no reason')),
    (cause: unknown) => Promise.reject(notMade('it cannot be started', cause)),
  );
  const late = AbortSignal.timeout(PROOF_MS);
  await Promise.race([ended, once(stdout, 'data', { signal: late })]).catch((error: unknown) => {
    throw late.aborted ? notMade('it took too long') : error;
  });
  ended.catch(() => {});
  const kept = opened.move();
  return { pid, [Symbol.dispose]: () => kept.dispose() };
}

function notMade(why: string, cause?: unknown): SkepError {
  return new SkepError('runtime/start-failed', { message: `its network cannot be made: ${why}`, cause });
}

/** Says that the network is ready, and stays until nobody wants it any more. */
export const HOLD = 'echo ready && read -r _';

/**
 * Where names lead in a gated network, for programs that know no proxy: servers that guard against private addresses resolve
 * names themselves, and refuse what is no public one (decision 0291). Nothing leaves that network, whosever the address is.
 */
export const NAMES_LEAD_TO = '1.2.3.4';

const SET_UP: Readonly<Record<OwnNetwork['kind'], string>> = {
  /**
   * The kernel lets what arrives from outside reach loopback, so that a server which listens only there can be reached
   * through a forwarded port. It would let loopback addresses out as well, by a socket that is bound to the interface, and
   * slirp4netns would take them for the machine's own; so outside of loopback they lead nowhere.
   */
  connected: 'echo 1 >/proc/sys/net/ipv4/conf/all/route_localnet && "$0" route add blackhole 127.0.0.0/8',
  /** What opens the sockets of the gateway inside has no rights, and needs the ports of DNS and the web. */
  gated: `"$0" link set lo up && "$0" address add ${NAMES_LEAD_TO}/32 dev lo && echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start`,
};

/** The command as it enters the network that this process is in. */
export function insideNetwork(
  { nsenter }: NetworkTools,
  { asRoot, pid }: { readonly asRoot: boolean; readonly pid: number },
  command: readonly string[],
): readonly string[] {
  const user = asRoot ? [] : ['--user', '--preserve-credentials'];
  return [nsenter, '--target', String(pid), ...user, '--net', '--', ...command];
}
