import type { Readable, Writable } from 'node:stream';
import type { ExtensionProvenance } from '@skep/core/catalog/publisher-extension.ts';
import type { Decision } from '../egress/decision.ts';
import type { EgressPolicy } from '../egress/policy.ts';
import type { Limits } from '../permissions/limits.ts';
import type { Mount, NamedVolume } from '../permissions/mounts.ts';
import type { PackageSource } from '../protocol/reference.ts';
import type { BuildAccess } from './build-secrets.ts';
import type { ELSEWHERE, RuntimeKind } from '../settings/identity.ts';

export interface RuntimeInfo {
  readonly kind: RuntimeKind | typeof ELSEWHERE;
  /** Stable identity of this engine, kept with each workload so that another engine's `list` leaves it alone. */
  readonly id: string;
  readonly version: string;
  /** Socket path or program, for people. */
  readonly endpoint: string;
  /** See `Runtime.narrowNetwork`. */
  readonly narrowNetwork?: string;
  /** The numbers of users there are not those of this machine: an engine without root, in a virtual machine or elsewhere. */
  readonly mapsUsers?: boolean;
}

export interface ImageSource {
  readonly kind: 'image';
  readonly reference: string;
}

export type Source = ImageSource | PackageSource;

/** Whether an image is run only when it is known who signed it. */
export interface Verification {
  /** What the catalogue says of it; absent where nobody says anything. */
  readonly expected?: ExtensionProvenance;
  /** False: what could not be verified runs all the same, with its doubt. */
  readonly required: boolean;
  /** A `trusted_root.json` of Sigstore instead of the one that came with this release. */
  readonly trustedRoot?: string;
}

export interface PrepareRequest {
  readonly source: Source;
  /** Variables of the person who asked, whose registries, proxies and logins count; else those of the runtime's environment. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Images: who must have signed it. */
  readonly verification?: Verification;
  /** `--runtime-image`, `--runtime-add-package`: container builds of packages only. */
  readonly baseImage?: string;
  readonly addPackages: readonly string[];
  /** Requirements installed beside a package of Python: container builds alone. */
  readonly buildWith?: readonly string[];
  /** Arguments baked into the image: container builds alone. */
  readonly bakedArgs?: readonly string[];
  /** Variables that the image says: container builds alone, and none for a workload, which is given its own. */
  readonly imageEnv?: Readonly<Record<string, string>>;
  /** Another name for the image that is built, which stays when the image is not used any more. */
  readonly tag?: string;
  /** Logins and settings for what fetches a package. */
  readonly access?: BuildAccess;
  /** What the same inputs made before is not used again. */
  readonly rebuild?: boolean;
  /** Reads extra certificate authorities for what is downloaded: PEM text. */
  readonly caCert?: () => Promise<string>;
  /** Receives what is being done and how far it is; already free of secrets. */
  readonly report: Report;
  readonly signal: AbortSignal;
}

/**
 * Told to the person who waits. `step` names a phase ("Building image"), `detail` is one line below it. A step is told
 * before anything of it is done, and by everything that asks somebody else or takes time: who must not wait stops there.
 */
export interface Report {
  step(title: string): void;
  detail(line: string): void;
}

export interface Prepared {
  /** What `create` takes: an image reference, or the id of a prefetched package tree. */
  readonly reference: string;
  /** True when Skep made it and may remove it again with `discard`. */
  readonly ours: boolean;
  /** TCP ports the image declares; empty for packages. */
  readonly exposedPorts: readonly number[];
  /** Exact version of the package, where it is known. */
  readonly version?: string;
  /** Paths that the image declares as volumes; absent for packages. */
  readonly volumes?: readonly string[];
  /** The image begins its server as root, or names nobody; absent for packages. */
  readonly asRoot?: boolean;
  /** What a person should know of an image that runs all the same: nobody knows where it comes from, or it is for other processors. */
  readonly doubt?: string;
}

export interface PortBinding {
  readonly hostIp: string;
  readonly hostPort: number;
  readonly containerPort: number;
}

export interface WorkloadSpec {
  readonly name: string;
  readonly reference: string;
  /** Appended to the image's entry point or the package's program. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Variables that are kept nowhere but where the server runs; see `Runtime.start`. */
  readonly secretEnv?: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  /** True: stdin stays open and `attach` speaks to it. */
  readonly stdio: boolean;
  readonly mounts: readonly Mount[];
  /** Mounted over what `mounts` show, after them: files and directories that are there in their sources. */
  readonly overlays?: readonly Mount[];
  /** Absolute POSIX paths inside whose content outlives the workload, with a place each; see `Runtime.dataPlaces`. */
  readonly data?: readonly string[];
  /** Kept like data, but found by every workload that names the same one; see `Runtime.dataPlaces`. */
  readonly volumes?: readonly NamedVolume[];
  /** `none` cuts the network; `bridge` is the default; anything else is the engine's business. */
  readonly network: string;
  /** Present: a gateway of its own is the only way out of it and, for `ports`, into it; `network` is then `bridge`. */
  readonly isolation?: EgressPolicy;
  readonly ports: readonly PortBinding[];
  readonly privileged: boolean;
  /** The defaults where they are absent. */
  readonly limits?: Limits;
  /** A container's own file system is read-only, but for directories in memory; the sandbox's is anyway. */
  readonly readOnly?: boolean;
  /**
   * Whom the server runs as: `root`, `UID` or `UID:GID`. Absent: in the sandbox a user that is never root, in a container its
   * image's.
   */
  readonly user?: string;
  /** The user stands for the root of the image: fails with `runtime/start-failed` where that keeps files for root alone. */
  readonly insteadOfRoot?: boolean;
  /** JSON of a part of a pod template that is merged into the pod's (`k8s_pod_template_patch`); only where there are pods. */
  readonly podPatch?: string;
  /** What it does with files is watched while it runs, as far as that can be; see `Runtime.seen`. */
  readonly learns?: boolean;
}

/** How one path inside was asked for. */
export interface SeenPath {
  /** It was to be written, made, renamed, removed or otherwise changed. */
  readonly changes: boolean;
  /** It was there at least once. */
  readonly there: boolean;
}

/** What a workload that learns did with files. */
export interface SeenFiles {
  /** By absolute path inside: mounts as a whole, and what is of no place that the runtime gives every workload. */
  readonly paths: ReadonlyMap<string, SeenPath>;
  /** No use of a path is missing among them. */
  readonly complete: boolean;
  /** What could not be seen, a phrase each. */
  readonly unseen: readonly string[];
}

export type WorkloadState = 'created' | 'running' | 'exited';

export interface Observed {
  readonly name: string;
  readonly state: WorkloadState;
  /** Set when exited. */
  readonly exitCode?: number;
  /** Set when it was ended because it used more than this limit. */
  readonly exceeded?: keyof Limits;
  readonly reference: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly createdAt: Date;
  readonly startedAt?: Date;
  /** Who started it ended before that was done: what runs may lack something, and was never waited for. */
  readonly interrupted?: true;
}

/** The stdio of a running workload. Ends when the workload does or the connection breaks; `close` only detaches. */
export interface Attachment {
  readonly stdin: Writable;
  readonly stdout: Readable;
  close(): void;
}

export interface LogChunk {
  readonly stream: 'stdout' | 'stderr';
  readonly bytes: Uint8Array;
}

export interface LogRequest {
  readonly follow: boolean;
  /** Last n lines only. */
  readonly tail?: number | undefined;
  /** Only what was written at that time or later, in milliseconds since 1970. Only where the runtime `timesLogs`. */
  readonly since?: number | undefined;
  /** Each line begins with its time in RFC 3339 and a space. Only where the runtime `timesLogs`. */
  readonly timestamps?: boolean;
  readonly signal: AbortSignal;
}

export interface RuntimeEvent {
  readonly name: string;
  readonly action: 'start' | 'exit' | 'remove';
}

/**
 * The port to whatever workloads run on. Adapters (`docker/`, `sandbox/`) pass one contract test (contract.ts).
 * Every call takes its deadline from an AbortSignal; every failure is a SkepError with a `runtime/*` code.
 */
export interface Runtime {
  /** Its name, for people and saved configurations. What it can is told below; nothing outside `runtime/` compares names. */
  readonly kind: RuntimeKind | typeof ELSEWHERE;
  /** Runs images, and builds them of packages; else it runs packages alone. */
  readonly runsImages: boolean;
  /** Reaches a server that listens on the loopback address of its own network; else it has to listen on all addresses. */
  readonly reachesLoopback: boolean;
  /** What a server wrote for itself stays when it is made anew from another version of its package. */
  readonly keepsFiles: boolean;
  /** Keeps the secret variables that a workload was created with; else each start is given them. */
  readonly keepsSecrets: boolean;
  /** Keeps the time of each line that a server wrote. */
  readonly timesLogs: boolean;
  /** What holds the limits of workloads here, for people. */
  readonly limitsHeldBy: string;
  /** Why the network `bridge` leads only to what programs ask of a proxy, and to public hosts; absent where it leads everywhere. */
  readonly narrowNetwork?: string;
  /** Fails with a hint when the runtime cannot be used now. */
  probe(signal: AbortSignal): Promise<RuntimeInfo>;
  /** Pulls, builds or prefetches. Leaves nothing behind when it fails or is aborted. */
  prepare(request: PrepareRequest): Promise<Prepared>;
  /** The Dockerfile of a package's image, which needs nothing beside it; absent where no images are built. */
  dockerfile?(request: PrepareRequest): Promise<string>;
  /** The exact version that a package means today; undefined where only fetching it would tell. */
  newest(source: PackageSource, signal: AbortSignal): Promise<string | undefined>;
  /** True while what `prepare` answered with is still there. Asks no registry. */
  has(reference: string): Promise<boolean>;
  /** What a workload was made from, by a reference that goes on meaning that, whatever is prepared later. */
  pin(workload: Pick<WorkloadSpec, 'name' | 'reference'>): Promise<string>;
  /** Removes what `prepare` made, unless a workload still uses it or it is not ours. Idempotent. */
  discard(reference: string): Promise<void>;
  /**
   * Removes what interrupted work of this user left and no workload uses: half-made builds, images, package trees,
   * directories; what `keep` names stays. Only while nothing is being prepared or created. Idempotent.
   */
  sweep(keep?: readonly string[]): Promise<void>;
  /** What of the wishes for a workload will not be as a person expects, a phrase each. */
  cautions(
    wanted: Pick<WorkloadSpec, 'name' | 'mounts' | 'volumes' | 'user' | 'limits' | 'readOnly' | 'learns'>,
  ): Promise<readonly string[]>;
  /** Where the content of a workload's `data` and `volumes` is kept, for people: a directory or volume for each path. */
  dataPlaces(spec: Pick<WorkloadSpec, 'name' | 'data' | 'volumes' | 'labels'>): readonly string[];
  /** True when workloads of that name and `skep.state` label kept something, or one of these volumes of that label is there. */
  holdsData(name: string, owner: string, volumes?: readonly string[]): Promise<boolean>;
  /** Removes what they kept, when no workload of that name is left, and these volumes, when none uses them. Idempotent. */
  removeData(name: string, owner: string, volumes?: readonly string[]): Promise<void>;
  /**
   * Makes ahead, into the environment's `spares`, what takes long to make for the workload that will be created. `asked` is
   * called once whoever makes it has heard of it.
   */
  readonly makeAhead?: (signal?: AbortSignal, asked?: () => void) => Promise<void>;
  /**
   * As `makeAhead`, for another workload like those that this very object has created. `failed` is told of what comes later than
   * that, and does not.
   */
  readonly makeSpare?: (failed?: (error: unknown) => void) => Promise<void>;
  /** Has something ready that the next workload of that reference begins with, whoever creates it. */
  readonly keepReady?: (reference: string) => Promise<void>;
  /** Creates without starting. A leftover of the same name is an error (`runtime/name-taken`). */
  create(spec: WorkloadSpec): Promise<void>;
  /**
   * Makes a stopped workload of that name anew from another description. True when everything that the server had written
   * for itself is kept; where that cannot be, false when there was something.
   */
  replace(spec: WorkloadSpec): Promise<boolean>;
  /** False when the reference of a workload means something else by now than what it was made from. */
  isCurrent(name: string): Promise<boolean>;
  /**
   * Attach first where stdio matters: output before `attach` may be lost. `secretEnv` is that of its description; `tell` hears
   * what is waited for.
   */
  start(name: string, secretEnv?: WorkloadSpec['secretEnv'], tell?: (line: string) => void): Promise<void>;
  /**
   * True where several processes may ask for the start of a workload at once: it starts once, and each hears how that ended.
   * Absent where only one may.
   */
  readonly sharesStart?: (spec: Pick<WorkloadSpec, 'isolation'>) => boolean;
  /** To a created or running workload; `runtime/not-running` when it has exited (start it again first). */
  attach(name: string): Promise<Attachment>;
  /** Resolves with the exit status; at once when it is already over. */
  wait(name: string, signal: AbortSignal): Promise<number>;
  /** Polite signal, then the hard one after `graceMs`. A workload that is not running is fine. */
  stop(name: string, graceMs: number): Promise<void>;
  /** Removes with everything made for it (networks, directories). A missing workload is fine. */
  remove(name: string): Promise<void>;
  inspect(name: string): Promise<Observed | undefined>;
  list(): Promise<readonly Observed[]>;
  logs(name: string, request: LogRequest): AsyncIterable<LogChunk>;
  /** What the gateway of an isolated workload decided since it was last started, newest last; empty for any other. */
  traffic(name: string): Promise<readonly Decision[]>;
  /**
   * What a workload that `learns` did with files, as far as this very object saw it: asked for before it is removed, and best
   * when it has ended.
   */
  seen(name: string): Promise<SeenFiles>;
  /** Live events of managed workloads; ends with an error when the engine goes away. */
  events(signal: AbortSignal): AsyncIterable<RuntimeEvent>;
}
