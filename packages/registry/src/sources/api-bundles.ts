import { SkepError } from '@skep/core/errors/skep-error.ts';
import { statusOf } from '@skep/core/fetch/client.ts';
import { crawl, type GetPage, type ListLimits } from './api-crawl.ts';
import type { ApiItem } from './api-page.ts';

/** Where servers list skills and plugins: below `x/<vendor>/` of the registry (specification §2.5.7). */
const VENDORS = ['dev.skep', 'dev.toolhive'] as const;
const PAGE_SIZE = '100';
/** What servers answer that do not have the list. */
const NOT_THERE: ReadonlySet<number> = new Set([404, 410]);

type BundleList = 'skills' | 'plugins';

/** A list as it was found; without `vendor` the registry does not offer it. */
interface FoundBundles {
  readonly vendor?: (typeof VENDORS)[number];
  readonly items: readonly ApiItem[];
}

export interface BundleState {
  readonly bundles: Readonly<Record<BundleList, FoundBundles>>;
  /** When a registry was last asked for them, milliseconds since the epoch. */
  readonly bundlesAt: number;
}

interface BundleLook {
  /** Address of the list of servers. */
  readonly servers: URL;
  readonly limits: ListLimits;
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** After how many milliseconds a registry without these lists is asked for them again. */
  readonly everyMs: number;
}

/** The lists beside that of the servers: at each look where there are any, else as rarely as the look says. */
export async function bundlesNow(
  get: GetPage,
  before: BundleState | undefined,
  { servers, limits, now, everyMs }: BundleLook,
): Promise<BundleState> {
  const offered =
    before !== undefined && Object.values(before.bundles).some(({ vendor }) => vendor !== undefined);
  if (before !== undefined && !offered && now - before.bundlesAt < everyMs) return before;
  const skills = await findBundles(get, { servers, limits, list: 'skills', before: before?.bundles.skills });
  const plugins = await findBundles(get, {
    servers,
    limits,
    list: 'plugins',
    before: before?.bundles.plugins,
  });
  return { bundles: { skills, plugins }, bundlesAt: now };
}

interface Asked {
  readonly list: BundleList;
  /** Address of the list of servers. */
  readonly servers: URL;
  readonly limits: ListLimits;
  /** What the look before found. */
  readonly before: FoundBundles | undefined;
}

/**
 * All versions of the skills or plugins of another registry. Only 404 and 410 mean that it has no such list, and at the
 * first look also another answer in JSON, which registries give that answer anything. Everything else fails as in `crawl`:
 * what is stored of an earlier run must not go because the registry has an outage.
 */
async function findBundles(get: GetPage, asked: Asked): Promise<FoundBundles> {
  const { before } = asked;
  if (before?.vendor !== undefined) {
    try {
      return await listed(get, asked, before.vendor);
    } catch (error) {
      if (!NOT_THERE.has(statusOf(error) ?? 0)) throw error;
      return { items: [] };
    }
  }
  for (const vendor of VENDORS) {
    try {
      return await listed(get, asked, vendor);
    } catch (error) {
      if (!isNoList(error)) throw error;
    }
  }
  return { items: [] };
}

function isNoList(error: unknown): boolean {
  if (NOT_THERE.has(statusOf(error) ?? 0)) return true;
  return (
    error instanceof SkepError && error.code === 'source/bad-answer' && error.detail?.['absent'] === true
  );
}

async function listed(
  get: GetPage,
  { list, servers, limits }: Asked,
  vendor: (typeof VENDORS)[number],
): Promise<FoundBundles> {
  const url = new URL(servers);
  url.pathname = url.pathname.replace(/servers$/u, `x/${vendor}/${list}`);
  url.search = new URLSearchParams({ limit: PAGE_SIZE, version: 'all' }).toString();
  const found = await crawl(get, { url, list, limits });
  return { vendor, items: latestOfEach(found?.items ?? []) };
}

/** Pages that shift while they are read may show an item twice. */
function latestOfEach(items: readonly ApiItem[]): readonly ApiItem[] {
  return [...new Map(items.map((item) => [item.key, item])).values()];
}
