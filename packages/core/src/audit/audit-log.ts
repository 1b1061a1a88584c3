import { auditLine, type AuditEvent } from './audit-event.ts';

/** Where audit lines go. */
export interface AuditSink {
  /** Takes one line with its newline, in order, without waiting and without failing. */
  write(line: string): void;
  /** Starts the file anew under its name, after a log rotator has moved it. */
  reopen(): Promise<void>;
  /** Resolves when everything taken so far is written or given up. Idempotent. */
  close(): Promise<void>;
}

export interface AuditLogOptions {
  readonly sink: AuditSink;
  readonly filter: EventFilter;
  /** RFC 3339 UTC. */
  readonly now: () => string;
  readonly randomId: () => string;
}

/** Never fails a request: what cannot be written is the sink's to report. */
export interface AuditLog {
  /** Whether events of this type are written; nothing is gathered for others. */
  wants(type: string): boolean;
  record(event: AuditEvent): void;
  reopen(): Promise<void>;
  close(): Promise<void>;
}

export function openAuditLog({ sink, filter, now, randomId }: AuditLogOptions): AuditLog {
  const wants = eventPredicate(filter);
  return {
    wants,
    record: (event) => {
      if (wants(event.type)) sink.write(auditLine(event, { id: randomId(), time: now() }));
    },
    reopen: () => sink.reopen(),
    close: () => sink.close(),
  };
}

/** Which events are written: those of the allow-list, all when it is empty, without the excluded ones. */
export interface EventFilter {
  readonly eventTypes: readonly string[];
  /** Wins over `eventTypes`. */
  readonly excludeEventTypes: readonly string[];
}

export function eventPredicate({ eventTypes, excludeEventTypes }: EventFilter): (type: string) => boolean {
  const allowed = new Set(eventTypes);
  const excluded = new Set(excludeEventTypes);
  return (type) => !excluded.has(type) && (allowed.size === 0 || allowed.has(type));
}

export interface StreamSinkOptions {
  /** Tells whether each text was written, and does not end the program where not. */
  readonly stream: { write(text: string, written: (error?: Error | null) => void): unknown };
  /** Told of lines that could not be written and are lost. */
  readonly onLost: (lines: number, cause: unknown) => void;
}

/** Audit lines on a stream of the process, which keeps their order. A reader that left loses only them. */
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
