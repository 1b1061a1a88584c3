import { isAbsolute } from 'node:path';
import { z } from 'zod';
import { auditShape } from './audit.ts';
import { authShape } from './auth-shape.ts';
import { databaseShape } from './database.ts';
import { sourceMembers } from './source-shape.ts';
import { telemetryShape } from './telemetry.ts';
import { claims, label, nonEmpty } from './texts.ts';

/** First path segments that are no registry, so that `/{registry}/v0.1` can never capture another endpoint. */
export const RESERVED_NAMES: ReadonlySet<string> = new Set([
  'v1',
  'registry',
  'openapi.json',
  '.well-known',
  'health',
  'readiness',
  'version',
  'metrics',
]);

const source = z.strictObject({ name: label, ...sourceMembers });

const registry = z.strictObject({
  name: label.refine((name) => !RESERVED_NAMES.has(name), 'is a reserved word of the HTTP interface'),
  sources: z.array(z.string()).min(1, 'must name at least one source'),
  claims: claims.optional(),
});

/** What sources that were made through the API may reach, and what any source may get wrong. */
const limits = z.strictObject({
  allowedPaths: z.array(nonEmpty.refine((path) => isAbsolute(path), 'must be an absolute path')).optional(),
  allowPrivateIP: z.boolean().optional(),
  maxInvalidShare: z.number().min(0, 'must be from 0 to 1').max(1, 'must be from 0 to 1').optional(),
  /** How often one caller may ask; without it as often as it likes. */
  requestRate: z
    .strictObject({
      perSecond: z.number().positive('must be greater than 0'),
      burst: z.number().min(1, 'must be at least 1'),
    })
    .optional(),
});

/** The members of a configuration file (specification §1.3). Strict: an unknown member is a problem. */
export const configShape = z.strictObject({
  sources: z.array(source).min(1, 'at least one source must be configured'),
  registries: z.array(registry).min(1, 'at least one registry must be configured'),
  limits: limits.optional(),
  auth: authShape.optional(),
  storage: z.strictObject({ path: z.string().min(1, 'must not be empty').optional() }).optional(),
  database: databaseShape.optional(),
  telemetry: telemetryShape.optional(),
  audit: auditShape.optional(),
});

export type ConfigShape = z.infer<typeof configShape>;
