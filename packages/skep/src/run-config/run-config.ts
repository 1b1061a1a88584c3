import type { MountSources } from '../permissions/mount-sources.ts';
import type { PermissionProfile } from '../permissions/profile.ts';
import type { RuntimeInfo, RuntimeKind } from '../runtime/runtime.ts';
import type { PackageSource } from '../protocol/reference.ts';

export type Transport = 'stdio' | 'sse' | 'streamable-http';

/** Which engine a workload belongs to; another engine's workloads are left alone. */
export interface RuntimeReference {
  readonly kind: RuntimeKind;
  /** Identity the runtime reported when the workload was made. */
  readonly id: string;
  /** Socket path or program it was reached at. */
  readonly endpoint: string;
  /** See `Runtime.sharesNetwork`. */
  readonly shares_network?: string;
}

/** How a run configuration keeps which runtime its workload belongs to. */
export function referenceTo({ kind, id, endpoint, sharesNetwork }: RuntimeInfo): RuntimeReference {
  return { kind, id, endpoint, ...(sharesNetwork === undefined ? {} : { shares_network: sharesNetwork }) };
}

export interface RuntimeConfig {
  /** `--runtime-image` */
  readonly builder_image?: string;
  /** `--runtime-add-package` */
  readonly additional_packages?: readonly string[];
}

/**
 * The portable description of one workload: what `export` writes, `--from-config` reads and `start` replays.
 * Keys are those of spec run-workload §7.1; keys of later releases are kept in `rest` and written back unchanged.
 */
export interface RunConfig {
  readonly schema_version: string;
  readonly name: string;
  /** Prepared reference: an image, or the id of a package tree. */
  readonly image: string;
  /** What `image` was built or prefetched from, for protocol schemes and catalogue packages. */
  readonly package?: PackageSource;
  /** Skep made `image` and may remove it with the workload. */
  readonly image_is_ours: boolean;
  /** What the image of a package is built from, where that is not the default. */
  readonly runtime_config?: RuntimeConfig;
  /** Address of the catalogue the server came from, unless that is the built-in one or a file of this machine. */
  readonly registry_url?: string;
  readonly registry_api_url?: string;
  readonly registry_server_name?: string;
  readonly cmd_args: readonly string[];
  readonly transport: Transport;
  readonly proxy_mode: 'streamable-http' | 'sse';
  /** IPv4 address the proxy listens on. */
  readonly host: string;
  readonly port: number;
  /** Web origins that may call beside the proxy's own; their hosts are names of the proxy (`--host NAME` adds one). */
  readonly allowed_origins?: readonly string[];
  readonly target_port?: number;
  readonly target_host?: string;
  /** `H:C` or `C`, as given. */
  readonly publish: readonly string[];
  readonly permission_profile_name_or_path?: string;
  /** Resolved: volumes merged in, paths absolute, network mode set. */
  readonly permission_profile: PermissionProfile;
  /** `--sandbox-user`. */
  readonly sandbox_user?: string;
  readonly env_vars: Readonly<Record<string, string>>;
  /** Names in `env_vars` whose values are secrets: kept in the private state file, never exported or listed. */
  readonly secret_env: readonly string[];
  /** What the user's ignore file means for the mounts; hidden by default. */
  readonly ignore_config?: { readonly load_global: boolean };
  /** `--volume` items as given; informational, the mounts are in the profile. */
  readonly volumes: readonly string[];
  /** Where the sources of the mounts led to when they were granted; never in an exported file. */
  readonly mount_sources?: MountSources;
  readonly container_labels: Readonly<Record<string, string>>;
  readonly group: string;
  readonly debug: boolean;
  /** `SKEP_PROXY_REQUEST_TIMEOUT` of the run: a Go duration. */
  readonly request_timeout?: string;
  /** A start does not wait for the server's first answer. */
  readonly no_check?: boolean;
  readonly trust_proxy_headers: boolean;
  /** Absent in an exported file: the machine that imports it chooses its own. */
  readonly runtime?: RuntimeReference;
  /** Members this release does not know, in their original form. */
  readonly rest: Readonly<Record<string, unknown>>;
}

export const SCHEMA_VERSION = 'v0.1.0';
