import { isAbsolute } from 'node:path';
import { CLAIM_LIMITS, type ClaimLimits } from '@skep/auth/claims/claims.ts';
import { MAX_CATALOGUE_BYTES } from '@skep/core/catalog/catalogue-text.ts';
import { z } from 'zod';
import { unless } from './problem.ts';
import { AT_START } from './restart.ts';
import { duration, nonEmpty } from './texts.ts';

const MIB = 1024 * 1024;
/** An answer is made in memory. */
const MAX_PAGE = 10_000;
/** git may use 512 MiB, and holds a file twice while it unpacks it. */
const MAX_CATALOGUE = 256 * MIB;

/** A whole number from `least` to `most`. */
export function count(least: number, most = Number.MAX_SAFE_INTEGER) {
  const message = `must be a whole number from ${least}${most === Number.MAX_SAFE_INTEGER ? '' : ` to ${most}`}`;
  return z.number().refine((value) => Number.isInteger(value) && value >= least && value <= most, message);
}

/** A limit that is a whole number in this range, or `usual` where it is not given. */
function bound([least, most]: readonly [least: number, most?: number], usual: number, what: string) {
  return count(least, most).default(usual).describe(what);
}

/** How many items one page of a list has: when the caller does not say, and at most. */
export interface PageSize {
  readonly default: number;
  readonly max: number;
}

function pageSize(usual: PageSize, what: string) {
  const size = (text: string, value: number) =>
    count(1, MAX_PAGE).optional().meta({ description: text, default: value });
  return z
    .strictObject({
      default: size(`${what} on a page whose size the caller does not say`, usual.default),
      max: size(`most ${what} on a page`, usual.max),
    })
    .transform(
      // One half alone moves the other along where they would contradict each other.
      ({ default: asked, max }): PageSize => ({
        default: asked ?? Math.min(usual.default, max ?? usual.max),
        max: max ?? Math.max(usual.max, asked ?? 0),
      }),
    )
    .superRefine(({ default: asked, max }, context) => {
      if (asked <= max) return;
      const message = `must not be more than max (${max})`;
      context.addIssue({ code: 'custom', path: ['default'], message });
    })
    .readonly()
    .prefault({})
    .meta(AT_START);
}

function rate(perSecond: string, burst: string) {
  return z.strictObject({
    perSecond: z.number().positive('must be greater than 0').describe(perSecond),
    burst: z.number().min(1, 'must be at least 1').describe(burst),
  });
}

const claimLimits = z
  .strictObject({
    maxKeys: bound([1, 1024], CLAIM_LIMITS.keys, 'claims that one thing may have'),
    maxValues: bound([1, 10_000], CLAIM_LIMITS.valuesPerKey, 'texts in the list of one claim'),
    maxTextSize: bound([1, 65_536], CLAIM_LIMITS.bytesPerText, 'bytes of one name or text'),
  })
  .transform(({ maxKeys, maxValues, maxTextSize }): ClaimLimits => ({
    keys: maxKeys,
    valuesPerKey: maxValues,
    bytesPerText: maxTextSize,
  }))
  .readonly()
  .prefault({});

/** The limits of callers and sources, a row each. Code reads a limit from `Limits` by its name. */
export const limitsShape = z
  .strictObject({
    allowedPaths: z
      .array(
        nonEmpty.superRefine(unless((path) => (isAbsolute(path) ? undefined : 'must be an absolute path'))),
      )
      .default([])
      .readonly()
      .describe('folders from which sources made through the API may read files; none when absent'),
    allowPrivateIP: z
      .boolean()
      .default(false)
      .describe('let sources made through the API be at private, loopback or link-local addresses'),
    maxInvalidShare: z
      .number()
      .min(0, 'must be from 0 to 1')
      .max(1, 'must be from 0 to 1')
      .default(0.5)
      .describe('share of invalid entries above which a catalogue is refused whole'),
    maxCatalogueSize: bound(
      [1024, MAX_CATALOGUE],
      MAX_CATALOGUE_BYTES,
      'bytes that a source may bring: a file, a download, what git fetches for it, the whole list of another registry',
    ),
    apiSource: z
      .strictObject({
        maxPages: bound([1, 100_000], 1000, 'pages of its list'),
        maxServers: bound([1, 1_000_000], 100_000, 'versions of servers on all pages'),
      })
      .readonly()
      .prefault({})
      .describe('what another registry may list'),
    requestRate: rate('requests per second in the long run', 'requests at once after a pause')
      .readonly()
      .optional()
      .describe('how often one caller may ask; as often as it likes when absent'),
    // Generous enough for many people behind one address, and little against somebody who tries tokens out.
    refusalRate: rate(
      'tokens that are refused per second in the long run',
      'tokens refused at once after a pause',
    )
      .default({ perSecond: 20, burst: 200 })
      .readonly()
      .describe('how often tokens from one address may be refused before further ones are answered with 429'),
    pageSize: pageSize({ default: 30, max: 1000 }, 'servers'),
    bundlePageSize: pageSize({ default: 50, max: 100 }, 'skills or plugins'),
    versionsPageSize: pageSize({ default: 1000, max: 1000 }, 'versions of one server'),
    maxBodySize: bound([1024, 1024 * MIB], MIB, 'bytes of a request body').meta(AT_START),
    maxInlineDataSize: bound(
      [1024, 1024 * MIB],
      10 * MIB,
      'bytes of a request that brings a source, which may hold a catalogue',
    ).meta(AT_START),
    maxDocumentSize: bound(
      [1024, MIB],
      256 * 1024,
      'bytes of the document of one version: publishing a larger one is refused, sources leave it out',
    ),
    maxDescriptionSize: bound([1, MIB], 64 * 1024, 'bytes of its description, in the same way'),
    maxEntryVersions: bound(
      [1, 100_000],
      1000,
      'versions that may be published of one entry; each publish of it reads them all',
    ),
    maxEntrySize: bound([1024, 1024 * MIB], 16 * MIB, 'bytes of the documents of all of them'),
    maxMetaSize: bound(
      [1],
      256 * 1024,
      'bytes of publisher `_meta` of one version; database.maxMetaSize counts before it',
    ),
    claims: claimLimits.describe('of sources, registries, entries and roles; what is stored already stays'),
    requestTimeout: duration({ milliseconds: 300_000, text: '5m0s' })
      .refine((milliseconds) => milliseconds >= 1000, 'must be at least 1s')
      .prefault('10s')
      .meta({
        description:
          'for how long a request may take to arrive, and as long again to be answered, from `1s` to `5m`',
        ...AT_START,
      }),
  })
  .readonly();

/** The limits as the file has them, under the same names; sizes in bytes, times in milliseconds. Frozen. */
export type Limits = z.output<typeof limitsShape>;

export const DEFAULT_LIMITS: Limits = limitsShape.parse({});

/** The limits of claims as written, or the default ones where they are wrong, which the shape reports. */
export function claimLimitsOf(written: unknown): ClaimLimits {
  return claimLimits.safeParse(written).data ?? DEFAULT_LIMITS.claims;
}
