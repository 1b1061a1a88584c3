import type { Readable, Writable } from 'node:stream';
import type { Host } from '@skep/core/command/host.ts';
import type { Places } from '@skep/core/files/places.ts';
import type { Ask, Confirm } from './ask.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { WantedRuntime } from '../runtime/detect.ts';
import type { Keyring } from '../secrets/keyring/keyring.ts';
import type { SecretEnv } from '../secrets/workload-secrets.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Spares } from '../runtime/spares.ts';
import type { OnFault } from '../supervisor/faults.ts';
import type { PolicyGate } from '../supervisor/policy.ts';
import type { ProcessIdentity } from '../supervisor/process-identity.ts';
import type { Program } from '../supervisor/spawn-supervisor.ts';
import type { Woken } from '../supervisor/wake-early.ts';

/** Everything of the outside world that a command may use. Made once, in main.ts. */
export interface Context extends Host {
  readonly uid: number | undefined;
  /** Name of the user who runs this; absent when the system knows none. */
  readonly osUser?: string;
  readonly self: ProcessIdentity;
  readonly places: Places;
  readonly program: Program;
  /** Asks the person; absent where nobody can be asked. */
  readonly ask?: Ask;
  /** Asks the person to agree; absent as `ask` is. */
  readonly confirm?: Confirm;
  /** Where another program speaks to this one; looked at by commands that speak with one, as a person's keys are there too. */
  readonly streams?: () => { readonly input: Readable; readonly output: Writable };
  /** Reads standard input to its end, but at most so many bytes; absent where it is a terminal. */
  readonly readInput?: ((maxBytes: number) => Promise<Buffer>) | undefined;
  /** The keyrings of the user, the best first; absent where they are looked for on this machine. */
  readonly keyrings?: readonly Keyring[];
  /** A whole number in [min, max], cryptographically random. */
  readonly random: (min: number, max: number) => number;
  readonly fetch: typeof fetch;
  readonly isAlive: (process: ProcessIdentity) => boolean;
  /** True when this process is in a group that the other is not. */
  readonly lacksGroups: (process: ProcessIdentity) => boolean;
  /** Ends a process: asks it (SIGTERM), or leaves it no choice (SIGKILL). */
  readonly end: (pid: number, how: 'SIGTERM' | 'SIGKILL') => void;
  readonly onFault: OnFault;
  /** Ends this process at once, though something in it still waits. */
  readonly exit: (status: number) => void;
  /** See `Chunks.keep`; absent where the program runs from its sources. */
  readonly keepCompiled?: () => void;
  /** The supervisor that was started before the command was; see `wakeEarly`. */
  readonly woken?: Woken;
  /** What workloads run on; absent where it is looked for on this machine. */
  readonly connectRuntime?: (reference: WantedRuntime | undefined) => Promise<Runtime>;
  /** See `RuntimeEnvironment.spares`. */
  readonly spares?: Spares;
  /** Asked before a workload is made or started; absent where everything is allowed. */
  readonly policy?: PolicyGate;
  /** Set where the supervisor runs this for a command that asked it to. */
  readonly inside?: Inside;
}

/** How a command that runs inside the supervisor differs (decision 0048). */
export interface Inside {
  /** Fails with `supervisor/not-here`, before anything is made: the command does it itself. */
  readonly handOver: (why: string) => never;
  /** Starts a saved workload in this very process, and tells who asked how it goes; `movable` as in `StartRequest`. */
  readonly launch: (
    config: RunConfig,
    on: { readonly runtime: Runtime; readonly movable: boolean; readonly secrets: SecretEnv },
  ) => Promise<void>;
}
