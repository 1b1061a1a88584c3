import type { Clock } from '@skep/core/time/clock.ts';

/** A stream for people or data. */
export interface Output {
  /** Never fails; `written` hears whether it worked, for example that the reader of a pipe has left. */
  write(text: string, written?: (error?: Error | null) => void): unknown;
  readonly isTTY: boolean;
  /** Of the terminal; undefined where there is none. */
  readonly columns: number | undefined;
}

/** What people or scripts type in. */
export interface Input {
  readonly isTTY: boolean;
  /**
   * One line without its end; undefined when there is none left. At a terminal the question is shown on standard error
   * first, and a hidden answer is not shown while it is typed.
   */
  readLine(question: string, answer: 'shown' | 'hidden'): Promise<string | undefined>;
}

/** Everything the program takes from around it. Only main.ts makes one from the real process. */
export interface Host {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly workingDirectory: string;
  readonly home: string;
  /** Directory for temporary files. */
  readonly temp: string;
  readonly platform: NodeJS.Platform;
  readonly arch: string;
  readonly nodeVersion: string;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly stdin: Input;
  /** The program's entry file, for starting threads of it. */
  readonly entry: URL;
  readonly clock: Clock;
  readonly random: () => number;
  readonly randomId: () => string;
  /** Calls back for each request to stop (SIGINT, SIGTERM) until the returned function is called. */
  onStop(listener: () => void): () => void;
  /** Calls back for each request to read files anew (SIGHUP) until the returned function is called. */
  onReload(listener: () => void): () => void;
  /** Gives memory that is not used any more back to the system; takes some 50 ms. */
  releaseMemory(): void;
  /** Ends the process at once, whatever is running. */
  exit(code: number): never;
}
