import { isAbsolute, resolve } from 'node:path';
import { didYouMean } from '@skep/core/settings/did-you-mean.ts';
import { z } from 'zod';
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

const LARGEST_DATA = 1_048_576;
const DEFAULT_DATA = 1024;

const known: ReadonlySet<string> = new Set(AUDIT_EVENTS);
const eventType = z.string().superRefine((name, context) => {
  if (known.has(name)) return;
  const near = didYouMean(name, AUDIT_EVENTS);
  const hint = near === undefined ? '' : `; did you mean "${near}"?`;
  context.addIssue({ code: 'custom', message: `unknown event type "${name}"${hint}` });
});

/** `audit` of the configuration (docs/behaviour/registry.md#audit-log). */
export const auditShape = z.strictObject({
  enabled: z.boolean().optional().describe('false when absent'),
  logFile: z
    .string()
    .optional()
    .describe('from the folder of the configuration; standard output when absent'),
  eventTypes: z.array(eventType).optional().describe('all when absent'),
  excludeEventTypes: z.array(eventType).optional().describe('counts before eventTypes'),
  includeRequestData: z.boolean().optional().describe('keeps bodies of requests that write'),
  maxDataSize: z
    .number()
    .refine(Number.isInteger, 'must be a whole number of bytes')
    .min(0, 'must not be negative')
    .superRefine((size, context) => {
      if (size <= LARGEST_DATA) return;
      const message = `audit.maxDataSize must not exceed ${String(LARGEST_DATA)} bytes, got ${String(size)}`;
      context.addIssue({ code: 'custom', message });
    })
    .optional()
    .describe(
      'a body of more bytes is left out whole and noted: half of one cannot be redacted by its member names; 1024 when absent',
    ),
});

/** `directory` is where a relative `logFile` starts: the folder of the configuration. */
export function resolvedAudit(shape: z.infer<typeof auditShape> | undefined, directory: string): AuditConfig {
  if (shape?.enabled !== true) return 'off';
  const { logFile = '', eventTypes = [], excludeEventTypes = [] } = shape;
  // 0 asks for the default, as in the files that exist.
  const maxBytes = shape.maxDataSize || DEFAULT_DATA;
  return {
    logFile:
      logFile === '' ? 'stdout' : { path: isAbsolute(logFile) ? logFile : resolve(directory, logFile) },
    eventTypes,
    excludeEventTypes,
    data: shape.includeRequestData === true ? { maxBytes } : 'none',
  };
}
