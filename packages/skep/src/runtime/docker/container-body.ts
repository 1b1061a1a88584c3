import { existsSync } from 'node:fs';
import { parseConfinedUser } from '../../permissions/confined-user-name.ts';
import { DEFAULT_LIMITS, type Limits } from '../../permissions/limits.ts';
import type { WorkloadSpec } from '../runtime.ts';
import { volumeMounts } from './data-volumes.ts';
import {
  gatewayAddress,
  isolatedEnv,
  ISOLATION_STATE_LABEL,
  isolationText,
  serverAddress,
  type Isolation,
} from './gateway/isolation.ts';
import { exposedPorts, portBindings } from './ports.ts';
import { ISOLATION_LABEL, MANAGED_LABEL, NAME_LABEL, NETWORK_LABEL } from './labels.ts';

/** As much as Skep keeps of its own logs (supervisor/log-keeper.ts), in two files. `docker logs` reads them as one. */
const BOUNDED_LOG = { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '2' } };

export interface BodyContext {
  /** The network that was made for it, if one was. */
  readonly network?: Connection | undefined;
  /** Podman has log drivers of its own, and journald bounds itself. */
  readonly podman: boolean;
}

/** How a container is connected with a network that was made for it. */
export interface Connection {
  /** Its name, where it is not made yet. */
  readonly id: string;
  readonly name: string;
  /** Id of a container on it that is joined. */
  readonly holder?: string | undefined;
  /** Settles when another one is gone that was on it; never fails. */
  readonly dropped?: Promise<void> | undefined;
  /** On an internal network, behind a gateway. */
  readonly isolation?: Isolation;
  /** Id of the network that was made for that gateway. */
  readonly outward?: string;
}

/**
 * The body of `POST /containers/create` (docs/behaviour/run.md#containers): no capabilities, no new privileges, bounded
 * processes, an init that reaps and forwards signals, and no restart policy, because restarts are the supervisor's
 * decision alone.
 */
export function containerBody(spec: WorkloadSpec, { network, podman }: BodyContext): object {
  const isolation = network?.isolation;
  const env = { ...spec.secretEnv, ...spec.env, ...(isolation ? isolatedEnv(isolation) : {}) };
  // Those of an isolated workload are its gateway's.
  const ports = isolation ? [] : spec.ports;
  return {
    Image: spec.reference,
    ...(spec.user === undefined || spec.user === '' ? {} : { User: userText(spec.user) }),
    ...(spec.args.length > 0 ? { Cmd: spec.args } : {}),
    // The engine keeps them, and shows them to whoever may use it: it has no other way to give them to a server.
    Env: Object.entries(env).map(([key, value]) => `${key}=${value}`),
    Labels: {
      ...spec.labels,
      [MANAGED_LABEL]: 'true',
      [NAME_LABEL]: spec.name,
      [ISOLATION_LABEL]: `${isolation !== undefined}`,
      ...(isolation === undefined ? {} : { [ISOLATION_STATE_LABEL]: isolationText(isolation) }),
      ...(network === undefined ? {} : { [NETWORK_LABEL]: network.name }),
    },
    Tty: false,
    AttachStdin: spec.stdio,
    AttachStdout: spec.stdio,
    AttachStderr: spec.stdio,
    OpenStdin: spec.stdio,
    StdinOnce: false,
    ExposedPorts: exposedPorts(ports),
    HostConfig: {
      NetworkMode: networkMode(spec, network),
      PortBindings: portBindings(ports),
      ...(isolation === undefined ? {} : isolatedMembers(isolation)),
      Mounts: [
        ...[...spec.mounts, ...(spec.overlays ?? [])].map((mount) => ({
          Type: 'bind',
          Source: mount.source,
          Target: mount.target,
          ReadOnly: mount.readOnly,
        })),
        ...volumeMounts(spec),
      ],
      Privileged: spec.privileged,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges', ...withoutLabels(spec)],
      ...limitMembers(spec.limits ?? DEFAULT_LIMITS),
      ...(spec.readOnly === true ? readOnlyMembers(spec) : {}),
      Init: true,
      RestartPolicy: { Name: 'no' },
      ...(podman ? {} : { LogConfig: BOUNDED_LOG }),
    },
    ...(network === undefined || network.holder
      ? {}
      : { NetworkingConfig: { EndpointsConfig: endpoint(network) } }),
  };
}

/** By numbers: an image need not know the name `root`. */
function userText(user: string): string {
  const { uid, gid } = parseConfinedUser(user);
  return `${uid}:${gid}`;
}

function networkMode(spec: WorkloadSpec, network: Connection | undefined): string {
  return network?.holder === undefined ? (network?.id ?? spec.network) : `container:${network.holder}`;
}

/** Said beside the mode, because from that alone older engines keep the name, which need not be unique. */
function endpoint({ id, name, isolation }: Connection): object {
  const fixed = isolation ? { IPAMConfig: { IPv4Address: serverAddress(isolation.internal) } } : {};
  return { [id]: { ...(id === name ? {} : { NetworkID: id }), ...fixed } };
}

/**
 * Names are asked of the gateway alone, and there is no IPv6: the machine's bridge has a link-local address, behind which
 * are all of its services.
 */
function isolatedMembers({ internal }: Isolation): object {
  const off = { 'net.ipv6.conf.all.disable_ipv6': '1', 'net.ipv6.conf.default.disable_ipv6': '1' };
  return { Dns: [gatewayAddress(internal)], ...(hasIpv6() ? { Sysctls: off } : {}) };
}

/** False on a Linux that was started without: then containers have none either, and nothing to switch off. */
function hasIpv6(): boolean {
  return !existsSync('/proc/sys/net') || existsSync('/proc/sys/net/ipv6');
}

/** True for workloads with a network of their own, that Skep makes; the others name one of the engine's. */
export function hasOwnNetwork(spec: Pick<WorkloadSpec, 'network'>): boolean {
  return spec.network === 'bridge' || spec.network === '';
}

/** On hosts with SELinux mounts work without its labels alone; a container without mounts keeps them. */
function withoutLabels({ mounts, data = [], volumes = [] }: WorkloadSpec): string[] {
  return mounts.length + data.length + volumes.length === 0 ? [] : ['label:disable'];
}

/** Where programs expect to write, and the part of its memory that files there may take. */
const SCRATCH: Readonly<Record<string, number>> = { '/tmp': 1 / 2, '/var/tmp': 1 / 4, '/run': 1 / 8 };

/** A file system of its own that nobody can write, with directories in memory where nothing else is mounted. */
function readOnlyMembers(spec: WorkloadSpec): object {
  const { mounts, data = [], volumes = [], limits = DEFAULT_LIMITS } = spec;
  const taken = new Set([...[...mounts, ...volumes].map(({ target }) => target), ...data]);
  const free = Object.entries(SCRATCH).filter(([directory]) => !taken.has(directory));
  const size = (part: number): string =>
    limits.memory === 0 ? '' : `,size=${Math.floor(limits.memory * part)}`;
  const Tmpfs = Object.fromEntries(
    free.map(([directory, part]) => [directory, `rw,exec,nosuid,nodev,mode=1777${size(part)}`]),
  );
  return { ReadonlyRootfs: true, Tmpfs };
}

/** Members of the body that bound what a container uses; 0 means "no limit" to engines too. */
function limitMembers({ memory, cpus, pids, disk }: Limits): object {
  const ulimit = (Name: string, limit: number): object => ({ Name, Soft: limit, Hard: limit });
  return {
    Memory: memory,
    // With what it may swap; as much as its memory means no swap at all.
    MemorySwap: memory,
    NanoCpus: Math.round(cpus * 1e9),
    PidsLimit: pids === 0 ? -1 : pids,
    Ulimits: [
      // No file with its memory when it crashes. How many it may have open is the engine's to say: more than its own is refused.
      ulimit('core', 0),
      // An engine cannot bound what a container writes, but how long each file gets.
      ...(disk === 0 ? [] : [ulimit('fsize', disk)]),
    ],
  };
}
