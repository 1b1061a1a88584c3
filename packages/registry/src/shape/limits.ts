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
    maxKeys: count(1, 1024).default(CLAIM_LIMITS.keys).describe('claims that one thing may have'),
    maxValues: count(1, 10_000).default(CLAIM_LIMITS.valuesPerKey).describe('texts in the list of one claim'),
    maxTextSize: count(1, 65_536).default(CLAIM_LIMITS.bytesPerText).describe('bytes of one name or text'),
  })
  .transform(({ maxKeys, maxValues, maxTextSize }): ClaimLimits => ({
    keys: maxKeys,
    valuesPerKey: maxValues,
    bytesPerText: maxTextSize,
  }))
  .readonly()
  .prefault({});

/** What callers and sources are held to: a row for each limit. Who is held to one reads it from `Limits` by its name. */
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
    maxCatalogueSize: count(1024, MAX_CATALOGUE)
      .default(MAX_CATALOGUE_BYTES)
      .describe(
        'bytes that a source may bring: a file, a download, what git fetches for it, the whole list of another registry',
      ),
    apiSource: z
      .strictObject({
        maxPages: count(1, 100_000).default(1000).describe('pages of its list'),
        maxServers: count(1, 1_000_000).default(100_000).describe('versions of servers on all pages'),
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
    maxBodySize: count(1024, 1024 * MIB)
      .default(MIB)
      .meta({ description: 'bytes of a request body', ...AT_START }),
    maxInlineDataSize: count(1024, 1024 * MIB)
      .default(10 * MIB)
      .meta({
        description: 'bytes of a request that brings a source, which may hold a catalogue',
        ...AT_START,
      }),
    maxDocumentSize: count(1024, MIB)
      .default(256 * 1024)
      .describe(
        'bytes of the document of one version: publishing a larger one is refused, sources leave it out',
      ),
    maxDescriptionSize: count(1, MIB)
      .default(64 * 1024)
      .describe('bytes of its description, in the same way'),
    maxEntryVersions: count(1, 100_000)
      .default(1000)
      .describe('versions that may be published of one entry; each publish of it reads them all'),
    maxEntrySize: count(1024, 1024 * MIB)
      .default(16 * MIB)
      .describe('bytes of the documents of all of them'),
    maxMetaSize: count(1)
      .default(256 * 1024)
      .describe('bytes of publisher `_meta` of one version; database.maxMetaSize counts before it'),
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
