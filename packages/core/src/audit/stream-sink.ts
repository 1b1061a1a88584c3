import type { AuditSink } from './audit-log.ts';

/** Audit lines on a stream of the process, which keeps their order itself. */
export function streamSink(stream: { write(text: string): unknown }): AuditSink {
  return {
    write: (line) => void stream.write(line),
    reopen: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
}
