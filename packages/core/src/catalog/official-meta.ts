import { z } from 'zod';

/** Key of the registry's own block beside a served document. */
export const OFFICIAL_META = 'io.modelcontextprotocol.registry/official';

const text = z.string().nullish().catch(undefined);
const timestamp = z
  .string()
  .refine((value) => !Number.isNaN(Date.parse(value)))
  .nullish()
  .catch(undefined);

/**
 * What a registry says about a version it serves. Times are RFC 3339 and stay as written; unknown members stay. A member
 * that cannot be read is as if it were missing: that a version is deleted must not be lost with a date beside it.
 */
export const officialMeta = z.looseObject({
  status: text,
  publishedAt: timestamp,
  updatedAt: timestamp,
  statusChangedAt: timestamp,
  isLatest: z.boolean().nullish().catch(undefined),
});

export type OfficialMeta = z.infer<typeof officialMeta>;

const envelope = z.looseObject({ [OFFICIAL_META]: officialMeta });

/** The official block of an item's outer `_meta`; undefined when there is none. */
export function officialMetaOf(outerMeta: unknown): OfficialMeta | undefined {
  return envelope.safeParse(outerMeta).data?.[OFFICIAL_META];
}
