import { SkepError } from '@skep/core/errors/skep-error.ts';
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
/** Of one list; a server with more tells nobody which it has. */
const MAX_TOOLS = 10_000;
/** No tool of a longer name is called. */
const MAX_NAME_CHARACTERS = 1_024;
/** Of one list. */
const MAX_PAGES = 100;
/** A list is asked for at most so often for one principal: nobody can have the server list its tools with every call. */
const FRESH_MS = 5_000;
/** Of all names that are remembered; the lists that were used last are. */
const MAX_CHARACTERS = 16 * 1024 * 1024;
/** What a name takes beside its characters. */
const EACH = 64;
const NONE: Hints = {};

/** What a server said of its tools. */
interface Said {
  readonly hints: Map<string, Hints>;
  /** When it was asked for all of them. */
  readonly wholeAt: number;
}

/** What a server says of its tools, as it told a client last, or the proxy on behalf of one. */
export class ServerTools {
  readonly #services: Pick<PartServices, 'ask' | 'clock' | 'transport'>;
  /** By whoever was told: a server may have other tools for somebody else. */
  readonly #said = new LRUCache<string, Said>({
    maxSize: MAX_CHARACTERS,
    sizeCalculation: ({ hints }) => [...hints.keys()].reduce((sum, name) => sum + name.length + EACH, EACH),
  });
  /** Under way, in the same way. */
  readonly #listings = new Map<string, Promise<Said | undefined>>();
  #generation = 0;

  constructor(services: Pick<PartServices, 'ask' | 'clock' | 'transport'>) {
    this.#services = services;
  }

  /** Changes with `forget`: what the server was asked for before holds no longer. */
  get generation(): number {
    return this.#generation;
  }

  /** A list has come to a client, which asked for it in that generation. */
  heard(items: readonly Item[], principal: string, generation: number): void {
    if (generation !== this.#generation) return;
    const key = this.#keyOf(principal);
    const { hints, wholeAt } = this.#said.get(key) ?? { hints: new Map<string, Hints>(), wholeAt: -Infinity };
    take(hints, items);
    if (hints.size > MAX_TOOLS) this.#said.delete(key);
    else this.#said.set(key, { hints, wholeAt });
  }

  /** What it said holds no longer. */
  forget(): void {
    this.#generation += 1;
    this.#said.clear();
    this.#listings.clear();
  }

  /**
   * The hints of a tool; of one that its caller has not heard of the server is asked first. Undefined where the server does not
   * tell which tools it has. Rejects with the code of what kept it from answering.
   */
  async hintsOf(name: string, call: Call, principal: string): Promise<Hints | undefined> {
    if (name.length > MAX_NAME_CHARACTERS) return undefined;
    const key = this.#keyOf(principal);
    const known = this.#said.get(key);
    const isFresh = known !== undefined && this.#services.clock.elapsed() - known.wholeAt < FRESH_MS;
    const hints = known?.hints.get(name) ?? (isFresh ? NONE : undefined);
    if (hints !== undefined) return hints;
    const said = await this.#listFor(call, key);
    return said && (said.hints.get(name) ?? NONE);
  }

  /** One process behind a pipe cannot tell its clients apart. */
  #keyOf(principal: string): string {
    return this.#services.transport === 'stdio' ? '' : principal;
  }

  #listFor(call: Call, key: string): Promise<Said | undefined> {
    const running = this.#listings.get(key);
    if (running !== undefined) return running;
    const listing = this.#listNow(call, key).finally(() => {
      if (this.#listings.get(key) === listing) this.#listings.delete(key);
    });
    this.#listings.set(key, listing);
    return listing;
  }

  /** Once more where the server says meanwhile that its tools are others; undefined where it says so again. */
  async #listNow(call: Call, key: string): Promise<Said | undefined> {
    for (let time = 0; time < 2; time += 1) {
      const since = this.#generation;
      const hints = await this.#list(call);
      if (hints === undefined) return undefined;
      if (since !== this.#generation) continue;
      const said = { hints, wholeAt: this.#services.clock.elapsed() };
      this.#said.set(key, said);
      return said;
    }
    return undefined;
  }

  /** The whole list. Rejects with the code of what kept the server from answering. */
  async #list(call: Call): Promise<Map<string, Hints> | undefined> {
    const list = LISTS.get(METHOD);
    const { ask } = this.#services;
    if (list === undefined || ask === undefined) throw new SkepError('internal/bug');
    const hints = new Map<string, Hints>();
    let cursor: unknown;
    let count = 0;
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const answer = readMessage(await ask(call, METHOD, cursor === undefined ? {} : { cursor }));
      if (typeof answer === 'string' || answer.kind !== 'response') return undefined;
      const read = readList(answer, list.member);
      const items = read && itemsOf(read.items, list);
      if (items === undefined || (count += items.length) > MAX_TOOLS) return undefined;
      take(hints, items);
      const next = memberSlice(answer.text, ['result', 'nextCursor']);
      if (next === undefined || next === 'null') return hints;
      cursor = parsedJson(next);
    }
    return undefined;
  }
}

function take(into: Map<string, Hints>, items: readonly Item[]): void {
  for (const { kind, id, hints = NONE } of items)
    if (kind === 'tool' && id.length <= MAX_NAME_CHARACTERS) into.set(id, hints);
}
