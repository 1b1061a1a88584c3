import { SkepError } from '@skep/core/errors/skep-error.ts';
import { type Client, statusOf } from '@skep/core/fetch/client.ts';
import { formatDuration } from '@skep/core/time/duration.ts';
import { z } from 'zod';
import { DEFAULT_LIMITS } from '../../shape/limits.ts';
import { duration, httpUrl } from '../../shape/texts.ts';
import { sourceKind } from '../kind.ts';
import { type OpenClient, withClient } from '../open-client.ts';
import type { Source, SourceContent } from '../source.ts';
import { splitCredentials } from '../url-secrets.ts';
import { bundlesNow, type BundleState } from './bundles.ts';
import {
  crawl,
  PAGE_SIZE,
  tooLarge,
  withParameter,
  type GetPage,
  type ListLimits,
  type SinglePage,
} from './crawl.ts';
import { type ApiMirror, changesSince, contentOf, exceeds, merged } from './mirror.ts';

const TIMEOUT_MS = 10_000;
const FULL_EVERY_MS = 6 * 60 * 60_000;
/** Of one page: a hundred documents with the largest publisher's block each, and some room for servers that send all at once. */
const MAX_PAGE_BYTES = 32 * 1024 * 1024;
/** What servers answer that do not know the question. */
const NOT_UNDERSTOOD: ReadonlySet<number> = new Set([400, 404, 422, 501]);

export const apiKind = sourceKind({
  shape: z.strictObject({
    endpoint: httpUrl.describe('a registry that speaks the official API; `/v0.1/servers` is added'),
    timeout: duration({ milliseconds: 300_000, text: '5m0s' })
      .prefault(formatDuration(TIMEOUT_MS))
      .describe('of one request, at most `5m`'),
  }),
  brief: 'another registry',
  formats: ['upstream'],
  mayBeEmpty: true,
  open: ({ endpoint, timeout }, { clock, limits, before, client }) => {
    const holdsBundles = before !== undefined && before.counts.skill + before.counts.plugin > 0;
    const options = { endpoint, limits, holdsBundles, timeoutMs: timeout };
    return apiSource(options, { open: client, now: () => clock.now() });
  },
});

/** An `api` source as configured. User information in the endpoint is sent as basic authentication. */
export interface ApiSourceOptions {
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

interface State extends BundleState {
  readonly mirror: ApiMirror;
  readonly hash: string;
  /** When the list was last read whole, by `now`. */
  readonly fullAt: number;
  readonly single: SinglePage | undefined;
}

/**
 * The servers of another registry that speaks the MCP Registry API v0.1, and the skills and plugins of one that lists
 * them. Between full polls only what changed of the servers is asked for (`updated_since`); a version that vanished without
 * a `deleted` status is noticed by the next full poll. A fetch that fails changes nothing that is remembered. Making the
 * source fails with `fetch/invalid-url`, fetching with `fetch/*`, `source/bad-answer`, `-endless`, `-too-large` and
 * `catalog/not-json`.
 */
export function apiSource(options: ApiSourceOptions, { open, now }: ApiSurroundings): Source {
  const { timeoutMs = TIMEOUT_MS, fullEveryMs = FULL_EVERY_MS, limits = DEFAULT_LIMITS } = options;
  const { holdsBundles = false } = options;
  const { url: list, headers } = listOf(options.endpoint);
  const label = `${list.origin}${list.pathname}`;
  const maxBytes = Math.min(MAX_PAGE_BYTES, limits.maxCatalogueSize);
  let state: State | undefined;

  /** Brings the state up to date, with the content where it had to be made. */
  async function refresh(
    client: Client,
    signal: AbortSignal,
  ): Promise<State & { readonly content?: SourceContent }> {
    const startedAt = now();
    const before = state;
    const recent = before !== undefined && startedAt - before.fullAt < fullEveryMs ? before : undefined;
    const get: GetPage = (url, conditions) =>
      client.get(url, { signal, headers: { ...headers, ...conditions, accept: 'application/json' } });
    const start = { limits, known: before?.single };
    const since = recent === undefined ? undefined : changesSince(recent.mirror, startedAt);
    // Where the registry says what changed, the rest is as it was.
    let base = since === undefined ? undefined : recent;
    const url = since === undefined ? list : withParameter(list, 'updated_since', since);
    const found = await crawl(get, { url, ...start }).catch((error: unknown) => {
      if (base === undefined || !NOT_UNDERSTOOD.has(statusOf(error) ?? 0)) throw error;
      base = undefined;
      return crawl(get, { url: list, ...start });
    });
    const look = { servers: list, limits, now: startedAt, everyMs: fullEveryMs, holdsBundles };
    const { bundles, bundlesAt } = await bundlesNow(get, before, look);
    const fullAt = base?.fullAt ?? startedAt;
    if (found === undefined) {
      if (before === undefined) throw new SkepError('internal/bug', { message: 'nothing was asked about' });
      const content = before.bundles === bundles ? undefined : contentOf(before.mirror, bundles);
      state = { ...before, hash: content?.hash ?? before.hash, fullAt, bundles, bundlesAt };
      return content === undefined ? state : { ...state, content };
    }
    const mirror = merged(base?.mirror ?? new Map(), found.items);
    if (exceeds(mirror, limits)) throw tooLarge(label, limits);
    const content = contentOf(mirror, bundles);
    state = { mirror, hash: content.hash, fullAt, bundles, bundlesAt, single: found.single };
    return { ...state, content };
  }

  return {
    label,
    async fetch(signal, known) {
      const { content, mirror, hash, bundles } = await withClient(open, { timeoutMs, maxBytes }, (client) =>
        refresh(client, signal),
      );
      return hash === known ? undefined : (content ?? contentOf(mirror, bundles));
    },
  };
}

function listOf(endpoint: string): ReturnType<typeof splitCredentials> {
  const { url, headers } = splitCredentials(endpoint);
  url.hash = '';
  url.pathname = `${url.pathname.replace(/(?<!\/)\/+$/u, '')}/v0.1/servers`;
  url.searchParams.set('limit', PAGE_SIZE);
  return { url, headers };
}
