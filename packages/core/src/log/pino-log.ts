import type { Writable } from 'node:stream';
import type { Logger } from 'pino';
import type { Log } from './log.ts';
import { redact } from './redact.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

export interface LogOptions {
  readonly level: LogLevel;
  /** Where lines go; standard error, written synchronously, when absent. */
  readonly stream?: Writable;
  /** Members of every line, for example `{ component: 'supervisor' }`. */
  readonly fields?: object;
  /** Members of a line that depend on what runs, such as the trace it belongs to. */
  readonly context?: () => object | undefined;
}

/** How much is kept for later while nothing can be written. */
const BACKLOG_BYTES = 1024 * 1024;

/**
 * A log of one JSON object per line with `level` as a word and `time` in RFC 3339. Every line is redacted (redact.ts).
 * pino is loaded on first use: commands that log nothing should not pay for it.
 */
export async function openLog(options: LogOptions): Promise<Log> {
  const { context } = options;
  const { pino } = await import('pino');
  const destination = options.stream ?? pino.destination({ fd: 2, sync: true, maxLength: BACKLOG_BYTES });
  // A program must not end because a disk is full.
  destination.on('error', () => {});
  const logger = pino(
    {
      level: options.level,
      base: null,
      ...(context === undefined ? {} : { mixin: () => ({ ...context() }) }),
      timestamp: pino.stdTimeFunctions.isoTime,
      // redact.ts has made a plain object of the error already
      serializers: { err: (error: unknown) => error },
      formatters: { level: (label) => ({ level: label }), log: (fields) => redactFields(fields) },
    },
    destination,
  );
  return wrap(logger, options.fields);
}

function wrap(logger: Logger, fields: object | undefined): Log {
  const bound = fields === undefined ? logger : logger.child(redactFields(fields));
  return {
    debug: (lineFields, message) => bound.debug(lineFields, message),
    info: (lineFields, message) => bound.info(lineFields, message),
    warn: (lineFields, message) => bound.warn(lineFields, message),
    error: (lineFields, message) => bound.error(lineFields, message),
    child: (childFields) => wrap(bound, childFields),
  };
}

/** An object, whatever `redact` makes of it; an Error given as fields becomes its facts. */
function redactFields(fields: object): Record<string, unknown> {
  return { ...Object(redact(fields)) };
}
