import { SkepError } from '@skep/core/errors/skep-error.ts';
import { statusOf } from '@skep/core/fetch/client.ts';
import { crawl, PAGE_SIZE, type GetPage, type ListLimits } from './crawl.ts';
import { merged } from './mirror.ts';
import type { ApiItem } from './page.ts';

/** Where servers list skills and plugins: below `x/<vendor>/` of the registry. */
const VENDORS = ['dev.skep', 'dev.toolhive'] as const;
/** What servers answer that do not have the list. */
const NOT_THERE: ReadonlySet<number> = new Set([404, 410]);
/** What servers and gateways answer to a path that they do not know. */
const UNKNOWN_PATH: ReadonlySet<number> = new Set([400, 401, 403, 405, 422, 501]);

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
  /** The store holds skills or plugins that an earlier process found there. */
  readonly holdsBundles: boolean;
}

/** The lists beside that of the servers: at each poll where there are any, else as rarely as `everyMs` says. */
export async function bundlesNow(
  get: GetPage,
  before: BundleState | undefined,
  look: BundleLook,
): Promise<BundleState> {
  const offered =
    before !== undefined && Object.values(before.bundles).some(({ vendor }) => vendor !== undefined);
  if (before !== undefined && !offered && look.now - before.bundlesAt < look.everyMs) return before;
  const find = (list: BundleList) => findBundles(get, look, { list, before: before?.bundles[list] });
  const skills = await find('skills');
  return { bundles: { skills, plugins: await find('plugins') }, bundlesAt: look.now };
}

/**
 * All versions of the skills or plugins of another registry. A registry that never had the list may answer anything to the
 * question. Of one that had it only 404 and 410 mean that it has it no more, and everything else fails as in `crawl`: what
 * is stored must not go because the registry has an outage.
 */
async function findBundles(
  get: GetPage,
  { servers, limits, holdsBundles }: BundleLook,
  { list, before }: { readonly list: BundleList; readonly before: FoundBundles | undefined },
): Promise<FoundBundles> {
  const had = before?.vendor;
  for (const vendor of had === undefined ? VENDORS : [had]) {
    const url = new URL(servers);
    url.pathname = url.pathname.replace(/servers$/u, `x/${vendor}/${list}`);
    url.search = new URLSearchParams({ limit: PAGE_SIZE, version: 'all' }).toString();
    try {
      const found = await crawl(get, { url, list, limits });
      // Pages that shift while they are read may show an item twice.
      return { vendor, items: [...merged(new Map(), found?.items ?? []).values()] };
    } catch (error) {
      const isNone = had === undefined ? isNoList(error, holdsBundles) : isGone(error);
      if (!isNone) throw error;
    }
  }
  return { items: [] };
}

function isGone(error: unknown): boolean {
  return NOT_THERE.has(statusOf(error) ?? 0);
}

function isNoList(error: unknown, holdsBundles: boolean): boolean {
  if (isGone(error)) return true;
  if (!(error instanceof SkepError)) return false;
  if (error.code === 'source/bad-answer' && error.detail?.['absent'] === true) return true;
  // A page for people in place of an answer.
  const unread = ['source/bad-answer', 'catalog/not-json', 'catalog/wrong-shape'].includes(error.code);
  return !holdsBundles && (UNKNOWN_PATH.has(statusOf(error) ?? 0) || unread);
}
