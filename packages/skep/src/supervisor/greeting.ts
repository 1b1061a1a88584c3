import { isRecord } from '@skep/core/json/is-record.ts';

/** The first line on the supervisor's socket; see protocol.ts. */
export interface Greeting {
  readonly skep: 'supervisor';
  readonly version: string;
  readonly pid: number;
  readonly started: string;
  /** The directories it works on; see `whatIsKept`. */
  readonly state: string;
  readonly data: string;
}

/** Undefined for anything else. Without a schema: a command that has the supervisor do its work loads nothing for it. */
export function readGreeting(line: unknown): Greeting | undefined {
  if (!isRecord(line)) return undefined;
  const { skep, version, pid, started, state, data } = line;
  if (skep !== 'supervisor' || typeof version !== 'string') return undefined;
  if (typeof pid !== 'number' || !Number.isInteger(pid) || typeof started !== 'string') return undefined;
  if (typeof state !== 'string' || typeof data !== 'string') return undefined;
  return { skep, version, pid, started, state, data };
}
