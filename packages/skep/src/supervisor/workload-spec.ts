import { createHash } from 'node:crypto';
import { egressPolicy } from '../egress/policy-of.ts';
import { openedToLearn } from '../permissions/allowed-hosts.ts';
import { DATA_PATH } from '../permissions/data-paths.ts';
import { isReadOnly } from '../permissions/hardening.ts';
import { limitsOf } from '../permissions/limits.ts';
import type { Mount } from '../permissions/mounts.ts';
import { isOfProxy } from '../secrets/reference.ts';
import { profileMounts, profileVolumes } from '../permissions/profile.ts';
import type { SecretEnv } from '../secrets/workload-secrets.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { PortBinding, Runtime, WorkloadSpec } from '../runtime/runtime.ts';

export interface SpecOptions {
  /** Which Skep installation owns the workload; see `ownerOf`. */
  readonly owner: string;
  /** Host port of the server's own port, for HTTP transports that are published. */
  readonly hostPort?: number;
  /** Secret variables by name, as resolved for this start. */
  readonly secrets?: SecretEnv;
  /** See `WorkloadSpec.overlays`. */
  readonly overlays?: readonly Mount[];
  /** See `WorkloadSpec.learns`. */
  readonly learns?: boolean;
  /** The ordinary user of a container whose image says root; see `otherUser`. */
  readonly insteadOfRoot?: string | undefined;
  readonly runtime: Pick<Runtime, 'reachesLoopback' | 'keepsSecrets'>;
}

/** What the runtime is asked to create (docs/behaviour/run.md#containers). */
export function toWorkloadSpec(config: RunConfig, options: SpecOptions): WorkloadSpec {
  const decided = transportEnv(config, options.runtime);
  const { secrets = {}, overlays = [], learns = false } = options;
  const isFree = ([name]: [string, string]): boolean => !Object.hasOwn(decided, name) && !isOfProxy(name);
  const secretEnv = Object.fromEntries(Object.entries(secrets).filter(isFree));
  const byPackage = config.runtime_config?.runtime_env ?? {};
  const open = Object.entries({ ...byPackage, ...dataEnv(config), ...config.env_vars })
    .filter(([name]) => !Object.hasOwn(secretEnv, name))
    .filter(isFree);
  const volumes = profileVolumes(config.permission_profile);
  const spec = {
    name: config.name,
    reference: config.image,
    args: config.cmd_args,
    env: { ...Object.fromEntries(open), ...decided },
    ...(Object.keys(secretEnv).length === 0 ? {} : { secretEnv }),
    stdio: config.transport === 'stdio',
    // Paths were made absolute when the config was built, so the directory does not matter here.
    mounts: profileMounts(config.permission_profile, '/'),
    ...(overlays.length === 0 ? {} : { overlays }),
    network: networkOf(config),
    ...(config.isolate_network ? { isolation: egressPolicy(learns ? whileLearning(config) : config) } : {}),
    ports: portsOf(config, options.hostPort),
    privileged: config.permission_profile.privileged ?? false,
    limits: limitsOf(config),
    ...(isReadOnly(config) ? { readOnly: true } : {}),
    ...userOf(config, options),
    ...(config.data_paths === undefined ? {} : { data: config.data_paths }),
    ...(volumes.length === 0 ? {} : { volumes }),
    ...(config.k8s_pod_template_patch === undefined ? {} : { podPatch: config.k8s_pod_template_patch }),
    ...(learns ? { learns: true } : {}),
  };
  // Where a workload keeps them, other values make it another one; where it does not, nothing is to tell of them.
  const kept =
    options.runtime.keepsSecrets || !spec.secretEnv ? spec : { ...spec, secretEnv: Object.keys(secretEnv) };
  const hash = createHash('sha256').update(JSON.stringify(kept)).digest('hex').slice(0, 16);
  return { ...spec, labels: { ...config.container_labels, ...standardLabels(config, options, hash) } };
}

function userOf({ sandbox_user: user }: RunConfig, { insteadOfRoot }: SpecOptions): Partial<WorkloadSpec> {
  if (insteadOfRoot !== undefined) return { user: insteadOfRoot, insteadOfRoot: true };
  return user === undefined ? {} : { user };
}

/** A workload that learns is open while it does, and its configuration says what its person gave it. */
export function whileLearning(config: RunConfig): RunConfig {
  return { ...config, permission_profile: openedToLearn(config.permission_profile) };
}

/** The label of a workload that learns: of no use to whoever does not watch it. */
export const LEARNS_LABEL = 'skep.learns';
/** The label that says which spec a container was made from. */
export const SPEC_LABEL = 'skep.spec';
/** The label that says where on the host the server's own port is. */
export const HOST_PORT_LABEL = 'skep.host-port';

function standardLabels(config: RunConfig, options: SpecOptions, hash: string): Record<string, string> {
  return {
    'skep.managed': 'true',
    'skep.name': config.name,
    'skep.basename': config.name,
    'skep.transport': config.transport,
    'skep.port': String(config.port),
    'skep.network-isolation': `${config.isolate_network === true}`,
    'skep.state': options.owner,
    [SPEC_LABEL]: hash,
    ...(options.learns === true ? { [LEARNS_LABEL]: 'true' } : {}),
    ...(options.hostPort === undefined ? {} : { [HOST_PORT_LABEL]: String(options.hostPort) }),
  };
}

/** XDG Base Directory Specification 0.8: where programs keep what is theirs. */
function dataEnv({ data_paths: paths = [] }: RunConfig): Record<string, string> {
  return paths.includes(DATA_PATH) ? { XDG_DATA_HOME: DATA_PATH } : {};
}

function transportEnv(config: RunConfig, runtime: SpecOptions['runtime']): Record<string, string> {
  if (config.transport === 'stdio' || config.target_port === undefined)
    return { MCP_TRANSPORT: config.transport };
  const port = String(config.target_port);
  return {
    MCP_TRANSPORT: config.transport,
    MCP_PORT: port,
    FASTMCP_PORT: port,
    MCP_HOST: listeningAddress(config, runtime),
  };
}

/**
 * Inside a container of its own, listening on loopback would be listening to nobody. In the sandbox the proxy reaches the
 * server's loopback, and where that is the machine's, any other address would be open to other machines.
 */
function listeningAddress(config: RunConfig, runtime: SpecOptions['runtime']): string {
  if (usesHostNetwork(config)) return config.target_host || '127.0.0.1';
  return runtime.reachesLoopback ? '127.0.0.1' : '0.0.0.0';
}

/** True when the server's ports are those of the machine. */
export function usesHostNetwork(config: Networked): boolean {
  return networkOf(config) === 'host';
}

type Networked = Pick<RunConfig, 'permission_profile' | 'isolate_network'>;

/**
 * `none` of a profile means no network (decision 0142), for an isolated workload a gateway that lets nothing through. One
 * that is to be isolated never gets the network of the machine or of others, whatever a file says.
 */
export function networkOf(config: Networked): string {
  if (config.isolate_network) return 'bridge';
  const mode = config.permission_profile.network?.mode ?? '';
  return mode === '' || mode === 'default' ? 'bridge' : mode;
}

function portsOf(config: RunConfig, hostPort: number | undefined): readonly PortBinding[] {
  const published = config.publish.map((text): PortBinding => {
    const [host, container] = text.split(':').map(Number);
    return {
      hostIp: config.host,
      hostPort: container === undefined ? 0 : (host ?? 0),
      containerPort: container ?? host ?? 0,
    };
  });
  if (hostPort === undefined || config.target_port === undefined) return published;
  // Only the proxy talks to the server's own port.
  return [{ hostIp: '127.0.0.1', hostPort, containerPort: config.target_port }, ...published];
}
