import { z } from 'zod';

/** Key of the registry's own block beside a served document. */
export const OFFICIAL_META = 'io.modelcontextprotocol.registry/official';

const timestamp = z.string().refine((value) => !Number.isNaN(Date.parse(value)), 'expected an RFC 3339 time');

/** What a registry says about a version it serves. Times are RFC 3339 and stay as written; unknown members stay. */
export const officialMeta = z.looseObject({
  status: z.string().nullish(),
  publishedAt: timestamp.nullish(),
  updatedAt: timestamp.nullish(),
  statusChangedAt: timestamp.nullish(),
  isLatest: z.boolean().nullish(),
});

export type OfficialMeta = z.infer<typeof officialMeta>;

const envelope = z.looseObject({ [OFFICIAL_META]: officialMeta });

/** The official block of an item's outer `_meta`; undefined when it is missing or malformed, as its loss is harmless. */
export function officialMetaOf(outerMeta: unknown): OfficialMeta | undefined {
  return envelope.safeParse(outerMeta).data?.[OFFICIAL_META];
}
