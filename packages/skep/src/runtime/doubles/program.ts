import type { Readable } from 'node:stream';

/** A running server in memory, as its program sees it. */
export interface MemoryProcess {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: Readable;
  /** To whoever is attached. */
  write(text: string): void;
  /** To the log. */
  warn(text: string): void;
  exit(code: number): void;
  /** From now on the polite signal does nothing. */
  ignoreTermination(): void;
}

export type MemoryProgram = (process: MemoryProcess) => void;

/** A server that does nothing until a test ends it. */
export const idle: MemoryProgram = () => {};
