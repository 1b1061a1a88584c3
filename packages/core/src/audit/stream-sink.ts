import type { AuditSink } from './audit-log.ts';

export interface StreamSinkOptions {
  /** Tells for each text whether it was written, and does not end the program where it was not. */
  readonly stream: { write(text: string, written: (error?: Error | null) => void): unknown };
  /** Told of lines that could not be written and are lost. */
  readonly onLost: (lines: number, cause: unknown) => void;
}

/** Audit lines on a stream of the process, which keeps their order itself. A reader that left loses them, nothing else. */
export function streamSink({ stream, onLost }: StreamSinkOptions): AuditSink {
  return {
    write: (line) =>
      void stream.write(line, (error) => {
        if (error) onLost(1, error);
      }),
    reopen: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
}
