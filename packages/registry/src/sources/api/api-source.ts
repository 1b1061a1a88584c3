import { SkepError } from '@skep/core/errors/skep-error.ts';
import { type Client, statusOf } from '@skep/core/fetch/client.ts';
import {
  type Crawl,
  crawl,
  type CrawlStart,
  type GetPage,
  type ListLimits,
  type SinglePage,
  tooLarge,
} from './crawl.ts';
import { bundlesNow, type BundleState } from './bundles.ts';
import { type ApiBundles, type ApiMirror, changesSince, contentOf, exceeds, merged } from './mirror.ts';
import type { ConditionalSource } from '../source.ts';
import { type OpenClient, withClient } from '../open-client.ts';
import { DEFAULT_LIMITS } from '../../shape/limits.ts';
import type { SourceContent } from '../source.ts';
import { splitCredentials } from '../url-credentials.ts';

/** An `api` source as configured. User information in the endpoint is sent as basic authentication. */
export interface ApiSourceOptions {
  readonly name: string;
  /** The address before `/v0.1/servers`. */
  readonly endpoint: string;
  /** Milliseconds for one request; default 10 s. */
  readonly timeoutMs?: number;
  /** Milliseconds after which the list is read whole again; default 6 h. Changes are asked for in between. */
  readonly fullEveryMs?: number;
  /** The store holds skills or plugins of an earlier process, which an outage must not take away. */
  readonly holdsBundles?: boolean;
  /** Of the whole list. */
  readonly limits?: ListLimits;
}

export interface ApiSurroundings {
  readonly open: OpenClient;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

export const TIMEOUT_MS = 10_000;
const FULL_EVERY_MS = 6 * 60 * 60_000;
const PAGE_SIZE = '100';
/** Of one page: a hundred documents with the largest publisher's block each, and some room for servers that send all at once. */
const MAX_PAGE_BYTES = 32 * 1024 * 1024;
/** What servers answer that do not know the question. */
const NOT_UNDERSTOOD: ReadonlySet<number> = new Set([400, 404, 422, 501]);

interface State extends BundleState {
  readonly mirror: ApiMirror;
  readonly hash: string;
  /** When the list was last read whole, by `now`. */
  readonly fullAt: number;
  readonly single?: SinglePage;
}

type Look = State & { readonly content?: SourceContent };

/**
 * The servers of another registry that speaks the MCP Registry API v0.1, and the skills and plugins of one that lists
 * them. Between full polls only what changed of the servers is asked for (`updated_since`); a version that vanished without a `deleted` status is noticed by the next full poll. A fetch
 * that fails changes nothing that is remembered. Making the source fails with `fetch/invalid-url`, fetching with
 * `fetch/*`, `source/bad-answer`, `-endless`, `-too-large` and `catalog/not-json`.
 */
export function apiSource(options: ApiSourceOptions, { open, now }: ApiSurroundings): ConditionalSource {
  const { timeoutMs = TIMEOUT_MS, fullEveryMs = FULL_EVERY_MS, limits = DEFAULT_LIMITS } = options;
  const { url: list, headers } = listOf(options.endpoint);
  const label = `${list.origin}${list.pathname}`;
  let state: State | undefined;

  /** Brings the state up to date, with the content where it had to be made. */
  async function refresh(client: Client, signal: AbortSignal): Promise<Look> {
    const startedAt = now();
    const before = state;
    const base = before !== undefined && startedAt - before.fullAt < fullEveryMs ? before : undefined;
    const asked = base === undefined ? undefined : changesSince(base.mirror, startedAt);
    const get: GetPage = (url, conditions) =>
      client.get(url, { signal, headers: { ...headers, ...conditions, accept: 'application/json' } });
    const known = before?.single === undefined ? {} : { known: before.single };
    const { found, since } = await crawlSince(get, { list, since: asked, limits, ...known });
    const bundles = await bundlesNow(get, before, {
      servers: list,
      limits,
      now: startedAt,
      everyMs: fullEveryMs,
      holdsBundles: options.holdsBundles ?? false,
    });
    if (found === undefined && before === undefined) {
      throw new SkepError('internal/bug', { message: 'nothing was asked about' });
    }
    const isUpdate = base !== undefined && since !== undefined;
    const mirror =
      found === undefined
        ? (before?.mirror ?? new Map())
        : merged(isUpdate ? base.mirror : new Map(), found.items);
    if (exceeds(mirror, limits)) throw tooLarge(label, limits);
    const same = found === undefined && before?.bundles === bundles.bundles;
    const content = same ? undefined : contentOf(mirror, itemsOf(bundles.bundles));
    const single = found === undefined ? before?.single : found.single;
    const kept = isUpdate || (found === undefined && since !== undefined) ? before?.fullAt : undefined;
    state = {
      mirror,
      hash: content?.hash ?? before?.hash ?? '',
      fullAt: kept ?? startedAt,
      bundles: bundles.bundles,
      bundlesAt: bundles.bundlesAt,
      ...(single === undefined ? {} : { single }),
    };
    return content === undefined ? state : { ...state, content };
  }

  const look = (signal: AbortSignal): Promise<Look> =>
    withClient(open, { timeoutMs, maxBytes: Math.min(MAX_PAGE_BYTES, limits.maxCatalogueSize) }, (client) =>
      refresh(client, signal),
    );

  return {
    name: options.name,
    label,
    async fetch(signal) {
      const { content, mirror, bundles } = await look(signal);
      return content ?? contentOf(mirror, itemsOf(bundles));
    },
    async fetchIfChanged(known, signal) {
      const { content, mirror, hash, bundles } = await look(signal);
      return hash === known ? undefined : (content ?? contentOf(mirror, itemsOf(bundles)));
    },
  };
}

function itemsOf({ skills, plugins }: State['bundles']): ApiBundles {
  return { skills: skills.items, plugins: plugins.items };
}

interface SinceStart extends Omit<CrawlStart, 'url' | 'list'> {
  readonly list: URL;
  readonly since: string | undefined;
}

/** Asks for changes, and for everything where the server does not understand that; `since` says which it was. */
async function crawlSince(
  get: GetPage,
  { list, since, ...start }: SinceStart,
): Promise<{ readonly found: Crawl | undefined; readonly since: string | undefined }> {
  try {
    return { found: await crawl(get, { url: listSince(list, since), ...start }), since };
  } catch (error) {
    if (since === undefined || !NOT_UNDERSTOOD.has(statusOf(error) ?? 0)) throw error;
    return { found: await crawl(get, { url: list, ...start }), since: undefined };
  }
}

function listOf(endpoint: string): ReturnType<typeof splitCredentials> {
  const { url, headers } = splitCredentials(endpoint);
  url.hash = '';
  url.pathname = `${url.pathname.replace(/(?<!\/)\/+$/u, '')}/v0.1/servers`;
  url.searchParams.set('limit', PAGE_SIZE);
  return { url, headers };
}

function listSince(list: URL, since: string | undefined): URL {
  const url = new URL(list);
  if (since !== undefined) url.searchParams.set('updated_since', since);
  return url;
}
