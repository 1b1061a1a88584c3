import type { Log } from '@skep/core/log/log.ts';
import type { Places } from '@skep/core/files/places.ts';
import type { RunConfig, RuntimeReference } from '../run-config/run-config.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Spares } from '../runtime/spares.ts';
import type { SecretEnv } from '../secrets/workload-secrets.ts';
import type { ProcessIdentity } from './process-identity.ts';
import type { SuperviseDeps } from './supervise.ts';
import type { ConnectedClients } from './tell-clients.ts';

/** What hosting workloads stands on; see `Host`. */
export interface HostDeps extends Omit<SuperviseDeps, 'runtime' | 'status' | 'secrets' | 'overlays'> {
  readonly places: Places;
  /** The runtime a workload belongs to; fails when it does not answer or is another one by now. */
  readonly openRuntime: (reference: RuntimeReference | undefined) => Promise<Runtime>;
  /** The same for a command that has just made sure of it. */
  readonly connectRuntime: (reference: RuntimeReference | undefined) => Promise<Runtime>;
  readonly self: ProcessIdentity;
  /** This process is a command that removes what it hosts when it ends. */
  readonly foreground?: boolean;
  readonly isAlive: (process: ProcessIdentity) => boolean;
  /** Asks a process to end (SIGTERM). */
  readonly terminate: (pid: number) => void;
  /** The secret variables of a workload, for a start that was not given them. */
  readonly secretsOf: (config: RunConfig) => Promise<SecretEnv>;
  /** Deletes the secrets that belong to this workload alone. */
  readonly forgetSecrets: (config: RunConfig) => Promise<void>;
  /** The log file of one workload's proxy. */
  readonly openWorkloadLog: (config: Pick<RunConfig, 'name' | 'debug'>) => Promise<WorkloadLog>;
  /** Absent where nothing is made ahead. */
  readonly spares?: Spares;
  /** Absent where no client is told. */
  readonly clients?: ConnectedClients;
}

export interface WorkloadLog {
  readonly log: Log;
  close(): void;
}
