import path from 'node:path';
import type { RuntimeEnvironment } from '../environment.ts';

export const workloadsDirectory = (environment: RuntimeEnvironment) =>
  path.join(environment.dataDir, 'sandbox');
export const packagesDirectory = (environment: RuntimeEnvironment) =>
  path.join(environment.cacheDir, 'packages');
export const treeOf = (environment: RuntimeEnvironment, reference: string) =>
  path.join(packagesDirectory(environment), reference);
/** What is compiled once for each Go; see go-library.ts. */
export const goLibrariesDirectory = (environment: RuntimeEnvironment) =>
  path.join(environment.cacheDir, 'go-library');

/** In the cache: that the sandbox was proved to confine; see proof.ts. */
export const PROOF_FILE = 'sandbox-proof.json';

/** Members of `WorkloadPlaces` that the processes of a gateway hold; the first is slirp4netns' where that is the way out. */
export const GATES = ['gate', 'entry'] as const;
export type Gate = (typeof GATES)[number];

/** Where one sandboxed workload keeps its things. */
export function workloadPlaces(directory: string) {
  const at = (name: string) => path.join(directory, name);
  return {
    directory,
    /** The WorkloadSpec; written once. */
    spec: at('workload.json'),
    /** The latest start; see records.ts. */
    run: at('run.json'),
    /** What bubblewrap itself reports: one JSON document per line. */
    status: at('status.json'),
    stdin: at('stdin'),
    stdout: at('stdout'),
    /** A pipe that bubblewrap holds while anything of the workload runs: its end is the workload's. */
    life: at('life'),
    /** Held by the gateway of a workload, and by what leads into it, like the life pipe by the workload; see gateway.ts. */
    gate: at('gate'),
    entry: at('entry'),
    /** What the gateway decided; see `Decision`. */
    decisions: at('decisions.jsonl'),
    /** What the processes of the gateway have to say of their start. */
    gateLog: at('gateway.log'),
    /** A pipe for what strace tells of a workload that learns; see trace/tracer.ts. */
    trace: at('trace'),
    /** What the server keeps for itself; see server-state.ts. */
    state: at('state'),
    /** Which package its own folder was copied from, and what came with it. */
    shipped: at('shipped.json'),
    /** Of which package, and in which boot, the state has a copy that was made ahead of the workload; see package-copy.ts. */
    copied: at('copied'),
    /** Which limit the latest run was ended for; see guard.ts. */
    exceeded: at('exceeded'),
    /** A pipe for stderr, and stdout too where it is not the protocol channel; see log-pipe.ts. */
    stderr: at('stderr'),
    /** What came out of it. */
    log: at('output.log'),
  } as const;
}

export type WorkloadPlaces = ReturnType<typeof workloadPlaces>;
