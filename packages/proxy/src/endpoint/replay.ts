import { lengthOf, type Frame } from './event.ts';

interface Kept {
  readonly stream: string;
  readonly sequence: number;
  readonly frame: Frame;
  readonly at: number;
}

const MAX_EVENTS = 256;
const MAX_CHARACTERS = 1024 * 1024;
const MAX_AGE_MS = 10 * 60_000;
/** Over all sessions of a proxy; a session that would exceed it forgets its own oldest events. */
const MAX_CHARACTERS_OF_ALL = 64 * 1024 * 1024;

/** What the sessions of one proxy keep together. */
export interface ReplayBudget {
  characters: number;
}

/**
 * The last events of one session, over all its streams, for clients that come back with `Last-Event-ID`
 * (MCP 2025-03-26, resumability). Bounded in number, size and age; an event larger than the bound is not kept.
 */
export class ReplayBuffer {
  #kept: Kept[] = [];
  #characters = 0;
  readonly #budget: ReplayBudget;

  constructor(budget: ReplayBudget) {
    this.#budget = budget;
  }

  add(event: Kept): void {
    const length = lengthOf(event.frame);
    if (length > MAX_CHARACTERS) return;
    this.#kept.push(event);
    this.#count(length);
    while (this.#isOver(event.at)) this.#dropOldest();
  }

  /** Frames of `stream` after `sequence`; undefined when nothing of that stream is kept any more. */
  after(stream: string, sequence: number): readonly Frame[] | undefined {
    const events = this.#kept.filter((event) => event.stream === stream);
    if (events.length === 0) return undefined;
    return events.filter((event) => event.sequence > sequence).map((event) => event.frame);
  }

  clear(): void {
    this.#count(-this.#characters);
    this.#kept = [];
  }

  #isOver(now: number): boolean {
    const oldest = this.#kept[0];
    if (oldest === undefined) return false;
    return (
      this.#kept.length > MAX_EVENTS ||
      this.#characters > MAX_CHARACTERS ||
      this.#budget.characters > MAX_CHARACTERS_OF_ALL ||
      now - oldest.at > MAX_AGE_MS
    );
  }

  #dropOldest(): void {
    const oldest = this.#kept.shift();
    if (oldest !== undefined) this.#count(-lengthOf(oldest.frame));
  }

  #count(characters: number): void {
    this.#characters += characters;
    this.#budget.characters += characters;
  }
}

/** What the id of an event says. */
export interface EventId {
  readonly stream: string;
  readonly sequence: number;
}

/** Event ids are `<stream>-<sequence>`; anything else is no id of ours. */
export function readEventId(id: string): EventId | undefined {
  const parts = /^([a-z0-9]{1,16})-(\d{1,15})$/u.exec(id);
  if (parts?.[1] === undefined || parts[2] === undefined) return undefined;
  return { stream: parts[1], sequence: Number(parts[2]) };
}
