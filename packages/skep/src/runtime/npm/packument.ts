import { z } from 'zod';

/** As much of a package's document as Skep looks at; everything else passes through untouched. */
const shape = z.looseObject({
  'dist-tags': z.record(z.string(), z.string()).default({}),
  /** None when everything was unpublished. */
  versions: z
    .record(
      z.string(),
      z.looseObject({
        dist: z.looseObject({ tarball: z.string().optional() }).optional(),
        deprecated: z.union([z.string(), z.boolean()]).optional(),
      }),
    )
    .default({}),
});

/** What a registry answers about a package (npm "package-metadata"). */
export type Packument = z.infer<typeof shape>;

/** Undefined for a document that is none. */
export function decodePackument(value: unknown): Packument | undefined {
  return shape.safeParse(value).data;
}
