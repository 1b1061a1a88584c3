import { z } from 'zod';
import { bundleShape } from './bundle.ts';

/** Decodes one skill of a registry file; unknown members stay. */
export const skillDocument = z.looseObject({
  ...bundleShape,
  /** Environment the skill needs, for people. */
  compatibility: z.string().max(500).nullish(),
  allowedTools: z.array(z.string()).nullish(),
  /** Expected signature of the package: a constraint, kept as it is written. */
  provenance: z.record(z.string(), z.unknown()).nullish(),
});

export type Skill = z.infer<typeof skillDocument>;
