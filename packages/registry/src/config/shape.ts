import { z } from 'zod';
import { auditShape } from './audit.ts';
import { authShape } from './auth-shape.ts';
import { corsShape } from './cors.ts';
import { databaseShape } from './database.ts';
import { limitsShape } from './limits.ts';
import { sourceMembers } from './source-shape.ts';
import { telemetryShape } from './telemetry.ts';
import { claims, label } from './texts.ts';

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

/** The members of a configuration file (specification §1.3). Strict: an unknown member is a problem. */
export const configShape = z.strictObject({
  sources: z.array(source).min(1, 'at least one source must be configured'),
  registries: z.array(registry).min(1, 'at least one registry must be configured'),
  limits: limitsShape.optional(),
  cors: corsShape.optional(),
  auth: authShape.optional(),
  storage: z.strictObject({ path: z.string().min(1, 'must not be empty').optional() }).optional(),
  database: databaseShape.optional(),
  telemetry: telemetryShape.optional(),
  audit: auditShape.optional(),
});

export type ConfigShape = z.infer<typeof configShape>;
