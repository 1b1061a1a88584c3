import type { MayBePrivate } from '@skep/auth/sign-in/port.ts';
import type { Requirement } from '@skep/core/catalog/run-plan/requirement.ts';
import type { Terminal } from '@skep/core/command/terminal.ts';
import type { Places } from '@skep/core/files/places.ts';
import type { Settings } from '@skep/core/settings/field.ts';
import type { RunConfig, RuntimeReference } from '../run-config/run-config.ts';
import type { Prepared, PrepareRequest, Runtime, RuntimeInfo } from '../runtime/runtime.ts';
import type { SecretsSurroundings } from '../secrets/provider.ts';
import type { SecretEnv } from '../secrets/workload-secrets.ts';
import type { Wanted } from '../supervisor/policy.ts';
import type { AskValue, EnvInputs, MergedEnv } from './merge-env.ts';

/** What is to be there before a workload can start. */
export type Preparation = Omit<PrepareRequest, 'report' | 'signal'>;

/** Everything decided about a run before anything is made. `carryOut` alone makes things of it. */
export type Plan = NewWorkload | SavedWorkload;

interface Decided {
  readonly name: string;
  /** Values of the secrets that it names, looked up before anything is made. */
  readonly secrets: SecretEnv;
  /** Hosted by the command itself, and removed when it ends. */
  readonly foreground: boolean;
}

/** A workload that is watched while a person uses it. */
export interface Learning {
  /** The file that the proposed profile is written to: absolute, and not there yet. */
  readonly file: string;
  /** What runs it again, without permissions: the words after `skep run`, and what goes to the server. */
  readonly again: { readonly words: readonly string[]; readonly args: readonly string[] };
  /** Flags of the run that have to be given again, values of secrets and variables among them. */
  readonly repeat: readonly string[];
}

/** Of flags, or of an exported file. */
export interface NewWorkload extends Decided {
  readonly is: 'new';
  /** Present with `--learn`. */
  readonly learning?: Learning;
  readonly runtime: Runtime;
  /** How the person gives it another name. */
  readonly rename: string;
  /** IP address the proxy listens on, without brackets. */
  readonly host: string;
  /** What decided it, with where each came from. */
  readonly settings: Settings;
  readonly env: EnvInputs;
  readonly preparation: Preparation;
  /** What the policy gate is told before anything is prepared. */
  readonly wanted: Wanted;
  /** Lines for the person, told before the preparation. */
  readonly warnings: readonly string[];
  /** Somebody signs in to its server elsewhere before anything is saved, where that wants it. */
  readonly signIn?: RemoteSignIn;
  /** Fails when what is there now contradicts what was asked for. */
  readonly configure: (made: Made) => Promise<RunConfig>;
}

/** Of a saved configuration. Nothing is claimed for it: its name and port are its own. */
export interface SavedWorkload extends Decided {
  readonly is: 'saved';
  /** What it runs from, where that is not there any more. */
  readonly missing?: { readonly runtime: Runtime; readonly preparation: Preparation };
  /** What is saved from now on. */
  readonly changes: Partial<RunConfig>;
}

/** How somebody signs in to a server elsewhere. */
export interface RemoteSignIn {
  readonly url: string;
  /** What is known of it, and saved where somebody signed in. */
  readonly auth: NonNullable<RunConfig['remote_auth_config']>;
  /** False where the server is asked whether it wants that. */
  readonly isWanted: boolean;
  readonly clientSecret: string | undefined;
  /** Absolute; PEM. */
  readonly caPath: string | undefined;
  readonly mayBePrivate: MayBePrivate;
}

/** An upgrade decided before anything is made. */
export interface UpgradePlan {
  readonly config: RunConfig;
  readonly runtime: Runtime;
  readonly preparation: Preparation;
  /** See `NewWorkload`. */
  readonly wanted: Wanted;
  /** Variables that the new version needs and the workload does not have. */
  readonly missing: readonly Requirement[];
  /** What the catalogue now wishes and the workload was not granted, or no longer needs: a line each. */
  readonly wishes: readonly string[];
  /** What it would give away that its person has not granted, a phrase each: nobody agrees to that without being asked. */
  readonly grants?: readonly string[];
  /** What is saved, once it is prepared and its variables are known. */
  readonly configure: (prepared: Prepared, env: Readonly<Record<string, string>>) => Promise<RunConfig>;
}

/** What is known only once it is made. */
export interface Made {
  readonly port: number;
  readonly merged: MergedEnv;
  readonly prepared: Prepared;
  /** What is saved of a sign-in, where somebody has signed in. */
  readonly signedIn?: RunConfig['remote_auth_config'];
}

/** What planning may read, ask and connect to. */
export interface Surroundings {
  readonly places: Places;
  /** What relative paths start from. */
  readonly cwd: string;
  /** Of the command itself: `-e KEY` takes its value from there. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly program: { readonly version: string };
  readonly terminal: Pick<Terminal, 'err'>;
  readonly signal: AbortSignal;
  readonly platform: NodeJS.Platform;
  readonly uid: number | undefined;
  readonly keyrings?: NonNullable<SecretsSurroundings['keyrings']>;
  /** Asks the person for a value; absent as `confirm` is. */
  readonly ask?: AskValue;
  /** Asks the person yes or no; absent where nobody can be asked. */
  readonly confirm?: (question: string) => Promise<boolean>;
  /** Set where a supervisor plans for a command that asked it to (decision 0048). */
  readonly inside?: { readonly handOver: (why: string) => never };
  /**
   * The runtime that a saved workload belongs to, or for a new one what the person named or the best there is; and which one it is, asked for while other things
   * go on, because only what is saved says so.
   */
  readonly connect: (
    reference?: RuntimeReference,
  ) => Promise<{ readonly runtime: Runtime; readonly info: Promise<RuntimeInfo> }>;
  /**
   * Set while the supervisor comes up: begins with what a workload with a network of its own will need, and resolves once that
   * has been asked for, or does not seem to be heard (decision 0462).
   */
  readonly makeAhead?: (runtime: Runtime) => Promise<void>;
}
