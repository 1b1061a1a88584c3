import { isAbsolute } from 'node:path';
import { CLAIM_LIMITS, type ClaimLimits } from '@skep/auth/claims/claims.ts';
import { z } from 'zod';
import { type BodyLimits, DEFAULT_BODIES } from '../api/route/body-limits.ts';
import { DEFAULT_PAGES, type PageLimits, type PageSize } from '../api/route/page-limits.ts';
import { DEFAULT_REFUSALS } from '../api/http/refusal-limit.ts';
import { DEFAULT_REQUEST_MS } from '../api/http/request-time.ts';
import { DEFAULT_LIST } from '../sources/api/crawl.ts';
import { DEFAULT_ENTRY, type EntryLimits } from '../store/entry-limits.ts';
import { DEFAULT_DOCUMENTS, type DocumentLimits } from '../sync/document-limits.ts';
import type { SourceLimits as OpenLimits } from '../sources/kind.ts';
import { duration, nonEmpty } from './texts.ts';

const MIB = 1024 * 1024;
/** An answer is made in memory. */
const LARGEST_PAGE = 10_000;
/** git may use 512 MiB, and holds a file twice while it unpacks it. */
const LARGEST_CATALOGUE = 256 * MIB;

/** A whole number from `least` to `most`. */
export function count(least: number, most = Number.MAX_SAFE_INTEGER) {
  const message = `must be a whole number from ${String(least)}${most === Number.MAX_SAFE_INTEGER ? '' : ` to ${String(most)}`}`;
  return z.number().refine((value) => Number.isInteger(value) && value >= least && value <= most, message);
}

function pageSize(usual: PageSize, what: string) {
  return z
    .strictObject({
      default: count(1, LARGEST_PAGE)
        .optional()
        .describe(
          `${what} on a page whose size the caller does not say; ${String(usual.default)} when absent`,
        ),
      max: count(1, LARGEST_PAGE)
        .optional()
        .describe(`most ${what} on a page; ${String(usual.max)} when absent`),
    })
    .superRefine((size, context) => {
      const { default: asked, max } = resolvedSize(size, usual);
      if (asked <= max) return;
      const message = `must not be more than max (${String(max)})`;
      context.addIssue({ code: 'custom', path: ['default'], message });
    })
    .optional();
}

function rate(perSecond: string, burst: string) {
  return z.strictObject({
    perSecond: z.number().positive('must be greater than 0').describe(perSecond),
    burst: z.number().min(1, 'must be at least 1').describe(burst),
  });
}

export const claimLimitsShape = z.strictObject({
  maxKeys: count(1, 1024)
    .optional()
    .describe(`claims that one thing may have; ${String(CLAIM_LIMITS.keys)} when absent`),
  maxValues: count(1, 10_000)
    .optional()
    .describe(`texts in the list of one claim; ${String(CLAIM_LIMITS.valuesPerKey)} when absent`),
  maxTextSize: count(1, 65_536)
    .optional()
    .describe(`bytes of one name or text; ${String(CLAIM_LIMITS.bytesPerText)} when absent`),
});

/** What callers and sources are held to (docs/behaviour/registry.md#limits). */
export const limitsShape = z.strictObject({
  allowedPaths: z
    .array(nonEmpty.refine((path) => isAbsolute(path), 'must be an absolute path'))
    .optional()
    .describe('folders from which sources made through the API may read files; none when absent'),
  allowPrivateIP: z
    .boolean()
    .optional()
    .describe('let sources made through the API be at private, loopback or link-local addresses'),
  maxInvalidShare: z
    .number()
    .min(0, 'must be from 0 to 1')
    .max(1, 'must be from 0 to 1')
    .optional()
    .describe('share of invalid entries above which a catalogue is refused whole; 0.5 when absent'),
  maxCatalogueSize: count(1024, LARGEST_CATALOGUE)
    .optional()
    .describe(
      'bytes that a source may bring: a file, a download, what git fetches for it, the whole list of another registry; 104857600 when absent',
    ),
  apiSource: z
    .strictObject({
      maxPages: count(1, 100_000).optional().describe('pages of its list; 1000 when absent'),
      maxServers: count(1, 1_000_000)
        .optional()
        .describe('versions of servers on all pages; 100000 when absent'),
    })
    .optional()
    .describe('what another registry may list'),
  requestRate: rate('requests per second in the long run', 'requests at once after a pause')
    .optional()
    .describe('how often one caller may ask; as often as it likes when absent'),
  refusalRate: rate(
    'tokens that are refused per second in the long run',
    'tokens refused at once after a pause',
  )
    .optional()
    .describe(
      `how often tokens from one address may be refused before further ones are answered with 429; ${String(DEFAULT_REFUSALS.perSecond)} per second and ${String(DEFAULT_REFUSALS.burst)} at once when absent`,
    ),
  pageSize: pageSize(DEFAULT_PAGES.servers, 'servers'),
  bundlePageSize: pageSize(DEFAULT_PAGES.bundles, 'skills or plugins'),
  versionsPageSize: pageSize(DEFAULT_PAGES.versions, 'versions of one server'),
  maxBodySize: count(1024, 1024 * MIB)
    .optional()
    .describe('bytes of a request body; 1048576 when absent'),
  maxInlineDataSize: count(1024, 1024 * MIB)
    .optional()
    .describe('bytes of a request that brings a source, which may hold a catalogue; 10485760 when absent'),
  maxDocumentSize: count(1024, MIB)
    .optional()
    .describe(
      'bytes of the document of one version: publishing a larger one is refused, sources leave it out; 262144 when absent',
    ),
  maxDescriptionSize: count(1, MIB)
    .optional()
    .describe('bytes of its description, in the same way; 65536 when absent'),
  maxEntryVersions: count(1, 100_000)
    .optional()
    .describe(
      `versions that may be published of one entry; ${String(DEFAULT_ENTRY.versions)} when absent. Each publish of it reads them all`,
    ),
  maxEntrySize: count(1024, 1024 * MIB)
    .optional()
    .describe(`bytes of the documents of all of them; ${String(DEFAULT_ENTRY.bytes)} when absent`),
  maxMetaSize: count(1)
    .optional()
    .describe(
      'bytes of publisher `_meta` of one version; 262144 when absent. database.maxMetaSize counts before it',
    ),
  claims: claimLimitsShape
    .optional()
    .describe('of sources, registries, entries and roles; what is stored already stays'),
  requestTimeout: duration({ milliseconds: 300_000, text: '5m0s' })
    .refine((milliseconds) => milliseconds >= 1000, 'must be at least 1s')
    .optional()
    .describe(
      'for how long a request may take to arrive, and as long again to be answered, from `1s` to `5m`; `10s` when absent',
    ),
});

export type LimitsShape = z.infer<typeof limitsShape>;

/** What holds sources back (`limits` of the configuration). */
export interface SourceLimits extends OpenLimits {
  /** Share of invalid entries, 0 to 1, above which a catalogue is refused whole. */
  readonly maxInvalidShare: number;
  /** How large one version may be, whoever brings it. */
  readonly documents: DocumentLimits;
  /** How much may be published to one entry. */
  readonly entry: EntryLimits;
}

/** What is fixed when the listeners are made. */
export interface ServingLimits {
  readonly pages: PageLimits;
  readonly bodies: BodyLimits;
  /** Milliseconds for a request to arrive, and for its handler. */
  readonly requestMs: number;
}

export function resolvedSourceLimits(limits: LimitsShape = {}): SourceLimits {
  return {
    allowedPaths: limits.allowedPaths ?? [],
    allowPrivateIP: limits.allowPrivateIP ?? false,
    maxInvalidShare: limits.maxInvalidShare ?? 0.5,
    documents: {
      document: limits.maxDocumentSize ?? DEFAULT_DOCUMENTS.document,
      description: limits.maxDescriptionSize ?? DEFAULT_DOCUMENTS.description,
    },
    entry: {
      versions: limits.maxEntryVersions ?? DEFAULT_ENTRY.versions,
      bytes: limits.maxEntrySize ?? DEFAULT_ENTRY.bytes,
    },
    maxCatalogueBytes: limits.maxCatalogueSize ?? DEFAULT_LIST.bytes,
    maxListPages: limits.apiSource?.maxPages ?? DEFAULT_LIST.pages,
    maxListServers: limits.apiSource?.maxServers ?? DEFAULT_LIST.servers,
  };
}

export function resolvedClaimLimits({ claims = {} }: Pick<LimitsShape, 'claims'> = {}): ClaimLimits {
  return {
    keys: claims.maxKeys ?? CLAIM_LIMITS.keys,
    valuesPerKey: claims.maxValues ?? CLAIM_LIMITS.valuesPerKey,
    bytesPerText: claims.maxTextSize ?? CLAIM_LIMITS.bytesPerText,
  };
}

/** The limits of claims as written, or the default ones where they are wrong, which the shape reports. */
export function claimLimitsOf(written: unknown): ClaimLimits {
  const { data } = claimLimitsShape.safeParse(written);
  return resolvedClaimLimits(data === undefined ? {} : { claims: data });
}

export function resolvedServing(limits: LimitsShape = {}): ServingLimits {
  const { pageSize: servers, bundlePageSize, versionsPageSize, maxBodySize, maxInlineDataSize } = limits;
  return {
    pages: {
      servers: resolvedSize(servers, DEFAULT_PAGES.servers),
      versions: resolvedSize(versionsPageSize, DEFAULT_PAGES.versions),
      bundles: resolvedSize(bundlePageSize, DEFAULT_PAGES.bundles),
    },
    bodies: {
      any: maxBodySize ?? DEFAULT_BODIES.any,
      inlineData: maxInlineDataSize ?? DEFAULT_BODIES.inlineData,
    },
    requestMs: limits.requestTimeout ?? DEFAULT_REQUEST_MS,
  };
}

/** One half alone moves the other along where they would contradict each other. */
function resolvedSize(
  given: { readonly default?: number | undefined; readonly max?: number | undefined } | undefined,
  usual: PageSize,
): PageSize {
  const { default: asked, max } = given ?? {};
  return {
    default: asked ?? Math.min(usual.default, max ?? usual.max),
    max: max ?? Math.max(usual.max, asked ?? 0),
  };
}
