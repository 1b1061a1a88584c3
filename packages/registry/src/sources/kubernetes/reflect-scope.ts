import { setImmediate } from 'node:timers/promises';
import type { Clock } from '@skep/core/time/clock.ts';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { statusOf } from '@skep/core/fetch/client.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import type { Cluster } from './cluster-client.ts';
import type { Listing, ScopeContents } from './scope-contents.ts';

export interface ReflectOptions {
  readonly cluster: Cluster;
  readonly clock: Clock;
  /** At least 0, below 1. */
  readonly random: () => number;
  readonly signal: AbortSignal;
  /** The contents, or the fault, are other ones. */
  readonly changed: () => void;
}

const PAGE_SIZE = 500;
/** A server whose pages never end is none. */
const MAX_PAGES = 10_000;
const FIRST_WAIT_MS = 250;
/** An outage of a minute is over within this. */
const SHORT_WAIT_MS = 1_000;
const SHORT_WAITS = 60;
const LONG_WAIT_MS = 15_000;
/** A watch that ends sooner counts as a failure, whatever it told: the next one has to wait. */
const USEFUL_MS = 1_000;
/** A kind is gone when the server has said so for this long: one that has just started may not know its kinds yet. */
const GONE_MS = 5_000;

/**
 * Keeps the contents of one scope in step with the cluster until the signal aborts: lists, watches from there on, lists
 * again where the server has forgotten that version (410), and waits longer after each failure. What is known stays
 * whatever fails. Never rejects.
 */
export async function reflectScope(contents: ScopeContents, options: ReflectOptions): Promise<void> {
  const { clock, random, signal } = options;
  const reflection = new Reflection(contents, options);
  while (!signal.aborted) {
    const wait = await reflection.turn();
    if (wait > 0) await clock.sleep(wait * (0.8 + 0.4 * random()), signal).catch(() => undefined);
  }
}

class Reflection {
  readonly #contents: ScopeContents;
  readonly #options: ReflectOptions;
  /** How far the contents are; undefined where they must be listed. */
  #version: string | undefined;
  #failures = 0;
  #absentSince: number | undefined;
  /** Why it was not followed at the last try; a list alone does not mend what keeps it from being watched. */
  #reason: string | undefined;
  /** The last failure was a version that the cluster has forgotten. */
  #wasGone = false;

  constructor(contents: ScopeContents, options: ReflectOptions) {
    this.#contents = contents;
    this.#options = options;
  }

  /** Lists where that is needed, then watches until that ends. Resolves with the milliseconds to wait before the next turn. */
  async turn(): Promise<number> {
    try {
      if (this.#absentSince !== undefined && (await this.#isStillAbsent())) return SHORT_WAIT_MS;
      this.#version ??= await this.#list();
      return await this.#watch(this.#version);
    } catch (error) {
      if (this.#options.signal.aborted) return 0;
      return this.#failed(error);
    }
  }

  async #list(): Promise<string> {
    const list = this.#contents.listing();
    try {
      const version = await this.#readPages(list);
      list.finish();
      this.#report(this.#reason, true);
      return version;
    } catch (error) {
      list.abandon();
      throw error;
    }
  }

  async #readPages(list: Listing): Promise<string> {
    const { cluster, signal } = this.#options;
    const { scope } = this.#contents;
    let limit = PAGE_SIZE;
    for (let pages = 0, next: string | undefined; pages < MAX_PAGES; pages += 1) {
      const page = await cluster.list(scope, { limit, next }, signal).catch((error: unknown) => {
        // Large objects come a few at a time.
        if (!isTooLarge(error) || limit === 1) throw error;
        limit = Math.max(1, Math.floor(limit / 4));
        return undefined;
      });
      if (page === undefined) continue;
      list.add(page.items);
      ({ next } = page);
      if (next === undefined) return page.resourceVersion;
      limit = Math.min(PAGE_SIZE, 2 * limit);
      // Callers have turns in between.
      await setImmediate();
    }
    throw new SkepError('source/endless', { message: 'the list of the cluster does not end' });
  }

  async #watch(after: string): Promise<number> {
    const { cluster, clock, signal } = this.#options;
    const contents = this.#contents;
    const events = await cluster.watch(contents.scope, after, signal);
    this.#report(undefined);
    const start = clock.elapsed();
    try {
      for await (const { type, object } of events) {
        if (type !== 'BOOKMARK' && (type === 'DELETED' ? contents.remove(object) : contents.put(object))) {
          this.#report(undefined, true);
        }
        this.#version = versionOf(object) ?? this.#version;
      }
    } finally {
      if (clock.elapsed() - start >= USEFUL_MS) {
        this.#failures = 0;
        this.#wasGone = false;
      } else this.#failures += 1;
    }
    // Only a list brings what there was no room for.
    if (contents.excess !== undefined) this.#version = undefined;
    return this.#wait();
  }

  async #failed(error: unknown): Promise<number> {
    const status = statusOf(error);
    // Absent is what a cluster says all the time, not before and after an outage.
    if (status !== 404) this.#absentSince = undefined;
    // A connection that is cut once goes on from where it was. After anything else the next try lists, so that what may
    // be listed is not kept as it was because it cannot be watched.
    if (!hasCode(error, 'fetch/unreachable') || this.#failures > 1) this.#version = undefined;
    this.#failures += 1;
    const isFirstTime = status === 410 && !this.#wasGone;
    this.#wasGone = status === 410;
    // The list is another question; one that is answered by 410 again and again has to wait.
    if (isFirstTime) return 0;
    if (status !== 404) return this.#failedWith(error);
    try {
      return (await this.#isStillAbsent()) ? SHORT_WAIT_MS : this.#failedWith(error);
    } catch (unsure) {
      this.#absentSince = undefined;
      return this.#failedWith(unsure);
    }
  }

  #failedWith(error: unknown): number {
    // What is over at the next try is not worth a word.
    const isWorthTelling =
      this.#failures > 1 || !this.#contents.isRead || [401, 403].includes(statusOf(error) ?? 0);
    if (isWorthTelling) this.#report(reasonOf(error));
    return this.#wait();
  }

  /** Whether the cluster does not have the kind. Its objects are gone with it, as soon as that is sure. */
  async #isStillAbsent(): Promise<boolean> {
    const { cluster, clock, signal } = this.#options;
    const contents = this.#contents;
    const { kind } = contents.scope;
    if ((await cluster.kindsOf(kind, signal)).includes(kind.plural)) {
      this.#absentSince = undefined;
      return false;
    }
    this.#version = undefined;
    this.#failures = 0;
    this.#absentSince ??= clock.elapsed();
    const isGone =
      clock.elapsed() - this.#absentSince >= GONE_MS && (!contents.isRead || contents.derived.size > 0);
    if (isGone) contents.listing().finish();
    this.#report(undefined, isGone);
    return true;
  }

  /** Why the scope is not followed now, undefined where it is; told where that or the contents are other ones. */
  #report(reason: string | undefined, isOther = false): void {
    const contents = this.#contents;
    this.#reason = reason;
    const told = reason ?? contents.excess;
    const fault = told === undefined ? undefined : faultLine(contents, told);
    const isSame = contents.fault === fault && contents.isTried;
    contents.fault = fault;
    contents.isTried = true;
    if (!isSame || isOther) this.#options.changed();
  }

  #wait(): number {
    if (this.#failures === 0) return 0;
    const most = this.#failures > SHORT_WAITS ? LONG_WAIT_MS : SHORT_WAIT_MS;
    return Math.min(most, FIRST_WAIT_MS * 2 ** Math.min(this.#failures - 1, 10));
  }
}

function isTooLarge(error: unknown): boolean {
  return error instanceof SkepError && error.code === 'fetch/too-large';
}

function versionOf({ metadata }: Readonly<Record<string, unknown>>): string | undefined {
  const version: unknown = isRecord(metadata) ? metadata['resourceVersion'] : undefined;
  return typeof version === 'string' && version !== '' ? version : undefined;
}

const MAX_FAULT = 400;

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : 'unexpected failure';
}

/** One line: what cannot be followed, and why. */
function faultLine({ scope: { kind, namespace } }: ScopeContents, reason: string): string {
  const where = namespace === undefined ? 'of all namespaces' : `of namespace ${namespace}`;
  return printable(`${kind.plural} ${where}: ${reason}`).slice(0, MAX_FAULT);
}
