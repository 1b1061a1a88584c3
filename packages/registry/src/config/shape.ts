import { z } from 'zod';
import { auditShape } from './audit.ts';
import { SOURCE_KINDS } from '../store/rows.ts';
import { authShape } from './auth.ts';
import { corsShape } from './cors.ts';
import { databaseShape } from './database.ts';
import { limitsShape } from '../shape/limits.ts';
import { sourceMembers } from '../sources/source-body.ts';
import { telemetryShape } from './telemetry.ts';
import { claims } from '../shape/claims.ts';
import type { Draft } from '../shape/draft.ts';
import { AT_START } from '../shape/restart.ts';
import { label, nonEmpty } from '../shape/texts.ts';

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
  sources: z
    .array(z.string())
    .min(1, 'must name at least one source')
    .describe('in order of priority, highest first'),
  claims: claims.optional(),
});

/** The members of a configuration file. Strict: an unknown member is a problem. */
export const configShape = z.strictObject({
  sources: z
    .array(source)
    .min(1, 'at least one source must be configured')
    .describe(`where entries come from; each is exactly one of ${SOURCE_KINDS.join(', ')}`),
  registries: z
    .array(registry)
    .min(1, 'at least one registry must be configured')
    .describe('what is served: sources under a name'),
  limits: limitsShape.prefault({}).describe('what callers and sources are held to'),
  cors: corsShape
    .optional()
    .meta({ description: 'lets pages of other origins call from a browser; none when absent', ...AT_START }),
  auth: authShape.prefault({}).describe('who may call, and who may do what'),
  storage: z
    .strictObject({
      path: nonEmpty
        .optional()
        .describe(
          'file of the embedded store, from the folder of the configuration; `:memory:` keeps nothing',
        ),
    })
    .prefault({})
    .meta({ description: 'the embedded store', ...AT_START }),
  database: databaseShape
    .optional()
    .meta({ description: 'PostgreSQL 14 or later, in place of the embedded store', ...AT_START }),
  telemetry: telemetryShape.prefault({}).meta({ description: 'metrics and traces', ...AT_START }),
  audit: auditShape.prefault({}).describe('who did what, a line for each'),
});

export type ConfigShape = z.infer<typeof configShape>;

/** A configuration as far as it can be read. */
export type ConfigDraft = Draft<z.input<typeof configShape>>;
