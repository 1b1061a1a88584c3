import path from 'node:path';
import type { RuntimeEnvironment } from '../environment.ts';

/** Where one sandboxed workload keeps its things. */
export interface WorkloadPlaces {
  readonly directory: string;
  /** The WorkloadSpec; written once. */
  readonly spec: string;
  /** The latest start; see run-record.ts. */
  readonly run: string;
  /** What bubblewrap itself reports: one JSON document per line. */
  readonly status: string;
  readonly stdin: string;
  readonly stdout: string;
  /** A pipe that bubblewrap holds while anything of the workload runs: its end is the workload's. */
  readonly life: string;
  /** What the server keeps for itself; see server-state.ts. */
  readonly state: string;
  /** Which package its own folder was copied from, and what came with it. */
  readonly shipped: string;
  /** stderr, and stdout too where it is not the protocol channel. */
  readonly log: string;
}

export const workloadsDirectory = (environment: RuntimeEnvironment) =>
  path.join(environment.dataDir, 'sandbox');
/** The logs of all sandboxed workloads, as a pattern below the data directory. */
export const SANDBOX_LOGS = 'sandbox/*/output.log';
export const packagesDirectory = (environment: RuntimeEnvironment) =>
  path.join(environment.cacheDir, 'packages');

export function workloadPlaces(directory: string): WorkloadPlaces {
  const at = (name: string) => path.join(directory, name);
  return {
    directory,
    spec: at('workload.json'),
    run: at('run.json'),
    status: at('status.json'),
    stdin: at('stdin'),
    stdout: at('stdout'),
    life: at('life'),
    state: at('state'),
    shipped: at('shipped.json'),
    log: at('output.log'),
  };
}
