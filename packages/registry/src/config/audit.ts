import { resolve } from 'node:path';
import { didYouMean } from '@skep/core/settings/did-you-mean.ts';
import { z } from 'zod';
import { unless } from '../shape/problem.ts';
import { AUDIT_EVENTS } from './audit-events.ts';

/** The `audit` block with its defaults. */
export interface AuditSettings {
  readonly logFile: 'stdout' | { readonly /** Absolute. */ path: string };
  /** Empty: all. */
  readonly eventTypes: readonly string[];
  readonly excludeEventTypes: readonly string[];
  /** Bytes of a request body that are kept. */
  readonly data: 'none' | { readonly maxBytes: number };
}

export type AuditConfig = 'off' | AuditSettings;

const MAX_DATA_BYTES = 1_048_576;
const USUAL_DATA_BYTES = 1024;

const known: ReadonlySet<string> = new Set(AUDIT_EVENTS);
const eventType = z.string().superRefine(
  unless((name) => {
    if (known.has(name)) return undefined;
    const near = didYouMean(name, AUDIT_EVENTS);
    return `unknown event type "${name}"${near === undefined ? '' : `; did you mean "${near}"?`}`;
  }),
);

export const auditShape = z.strictObject({
  enabled: z.boolean().default(false),
  logFile: z
    .string()
    .default('')
    .describe('from the folder of the configuration; standard output when empty'),
  eventTypes: z.array(eventType).default([]).describe('all when empty'),
  excludeEventTypes: z.array(eventType).default([]).describe('counts before eventTypes'),
  includeRequestData: z.boolean().default(false).describe('keeps bodies of requests that write'),
  maxDataSize: z
    .number()
    .refine(Number.isInteger, 'must be a whole number of bytes')
    .min(0, 'must not be negative')
    .superRefine(
      unless((size) =>
        size <= MAX_DATA_BYTES
          ? undefined
          : `audit.maxDataSize must not exceed ${MAX_DATA_BYTES} bytes, got ${size}`,
      ),
    )
    .default(USUAL_DATA_BYTES)
    .describe(
      'a body of more bytes is left out whole and noted: half of one cannot be redacted by its member names',
    ),
});

/** `directory` is where a relative `logFile` starts: the folder of the configuration. */
export function resolvedAudit(shape: z.infer<typeof auditShape>, directory: string): AuditConfig {
  const { enabled, logFile, eventTypes, excludeEventTypes, includeRequestData, maxDataSize } = shape;
  if (!enabled) return 'off';
  return {
    logFile: logFile === '' ? 'stdout' : { path: resolve(directory, logFile) },
    eventTypes,
    excludeEventTypes,
    // 0 asks for the usual size, as in the files that exist.
    data: includeRequestData ? { maxBytes: maxDataSize || USUAL_DATA_BYTES } : 'none',
  };
}
