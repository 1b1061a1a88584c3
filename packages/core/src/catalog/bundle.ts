import { z } from 'zod';
import { checkedText } from './checked-text.ts';
import { bundleNameFault, namespaceFault, versionFault } from './entry-name.ts';

/** What skills and plugins have in common: a named, versioned bundle of files in an OCI or git package. */
const text = z.string();
const optionalText = text.nullish();

export type BundleStatus = 'ACTIVE' | 'DEPRECATED' | 'ARCHIVED';

const STATUSES: ReadonlyMap<string | undefined, BundleStatus> = new Map([
  ['active', 'ACTIVE'],
  ['deprecated', 'DEPRECATED'],
  ['archived', 'ARCHIVED'],
]);

const bundlePackage = z.looseObject({
  registryType: z.enum(['oci', 'git']),
  identifier: optionalText,
  digest: optionalText,
  mediaType: optionalText,
  url: optionalText,
  ref: optionalText,
  commit: optionalText,
  subfolder: optionalText,
});

/** Members of both kinds, with the limits of the ingest schema (docs/behaviour/registry.md#skills-and-plugins). */
const bundleShape = {
  namespace: checkedText(namespaceFault),
  name: checkedText(bundleNameFault),
  description: text.min(1, 'the description is empty').max(1024),
  version: checkedText(versionFault),
  /** In any case: `active`, `deprecated` or `archived`. Absent means active. */
  status: checkedText((value) =>
    STATUSES.has(value.toLowerCase()) ? undefined : 'the status must be active, deprecated or archived',
  ).nullish(),
  title: text.max(100).nullish(),
  license: text.max(256).nullish(),
  repository: z.looseObject({ url: optionalText, type: optionalText }).nullish(),
  icons: z
    .array(z.looseObject({ src: text, size: optionalText, type: optionalText, label: optionalText }))
    .nullish(),
  packages: z.array(bundlePackage).nullish(),
  metadata: z.record(text, z.unknown()).nullish(),
  _meta: z.record(text, z.unknown()).nullish(),
};

/** The status as the API writes it; anything unknown cannot get past the schema and reads as active. */
export function bundleStatus(status: string | null | undefined): BundleStatus {
  return STATUSES.get(status?.toLowerCase()) ?? 'ACTIVE';
}

/** Decodes one plugin of a registry file; unknown members stay. */
export const pluginDocument = z.looseObject(bundleShape);

export type Plugin = z.infer<typeof pluginDocument>;

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
