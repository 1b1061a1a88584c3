import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { memberSlice } from '@skep/core/json/scan.ts';
import { LRUCache } from 'lru-cache';
import type { Call } from '../../call/call.ts';
import { readMessage } from '../../message/json-rpc.ts';
import { readList } from '../../message/list-answer.ts';
import type { PartServices } from '../part.ts';
import { itemsOf, type Item } from './list-items.ts';
import { LISTS } from './methods.ts';
import type { Hints } from './question.ts';

const METHOD = 'tools/list';
/** Tools that are remembered: the newest. A server with more has none called that nobody has listed. */
const MAX_TOOLS = 10_000;
/** Of one list. */
const MAX_PAGES = 100;
/** A list is asked for at most so often for one principal: nobody can have the server list its tools with every call. */
const FRESH_MS = 5_000;
/** Principals whose lists are remembered to be fresh. */
const MAX_PRINCIPALS = 1_000;

/** What a server says of its tools, as it told a client last, or the proxy on behalf of one. */
export class ServerTools {
  readonly #ask: PartServices['ask'];
  readonly #clock: PartServices['clock'];
  readonly #hints = new LRUCache<string, Hints>({ max: MAX_TOOLS });
  /** Under way, by principal: a server may have other tools for somebody else. */
  readonly #listings = new Map<string, Promise<boolean>>();

  /** When each was told the whole list. */
  readonly #told = new LRUCache<string, number>({ max: MAX_PRINCIPALS });

  constructor({ ask, clock }: Pick<PartServices, 'ask' | 'clock'>) {
    this.#ask = ask;
    this.#clock = clock;
  }

  /** A list has come to a client. */
  heard(items: readonly Item[]): void {
    for (const { kind, id, hints = {} } of items) if (kind === 'tool') this.#hints.set(id, hints);
  }

  /** What it said holds no longer. */
  forget(): void {
    this.#hints.clear();
    this.#listings.clear();
    this.#told.clear();
  }

  /**
   * The hints of a tool; of one that nobody has heard of the server is asked first. Undefined where the server does not tell
   * which tools it has.
   */
  async hintsOf(id: string, call: Call, principal: string): Promise<Hints | undefined> {
    const known = this.#hints.get(id);
    if (known !== undefined) return known;
    const isFresh = this.#clock.elapsed() - (this.#told.get(principal) ?? -Infinity) < FRESH_MS;
    return isFresh || (await this.#listFor(call, principal)) ? (this.#hints.get(id) ?? {}) : undefined;
  }

  #listFor(call: Call, principal: string): Promise<boolean> {
    const running = this.#listings.get(principal);
    if (running !== undefined) return running;
    const listing = this.#list(call)
      .catch(() => false)
      .then((isWhole) => {
        if (isWhole && this.#listings.get(principal) === listing)
          this.#told.set(principal, this.#clock.elapsed());
        return isWhole;
      })
      .finally(() => {
        if (this.#listings.get(principal) === listing) this.#listings.delete(principal);
      });
    this.#listings.set(principal, listing);
    return listing;
  }

  /** Resolves true when the whole list was heard. Rejects with the code of what kept the server from answering. */
  async #list(call: Call): Promise<boolean> {
    const list = LISTS.get(METHOD);
    const ask = this.#ask;
    if (list === undefined || ask === undefined) return false;
    let cursor: unknown;
    let count = 0;
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const answer = readMessage(await ask(call, METHOD, cursor === undefined ? {} : { cursor }));
      if (typeof answer === 'string' || answer.kind !== 'response') return false;
      const read = readList(answer, list.member);
      const items = read && itemsOf(read.items, list);
      if (items === undefined || (count += items.length) > MAX_TOOLS) return false;
      this.heard(items);
      const next = memberSlice(answer.text, ['result', 'nextCursor']);
      if (next === undefined || next === 'null') return true;
      cursor = parsedJson(next);
    }
    return false;
  }
}
