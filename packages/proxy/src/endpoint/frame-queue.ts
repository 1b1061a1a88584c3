import { lengthOf, type Frame } from './event.ts';

/** Progress that a slow reader has not taken yet; older progress gives way to newer. */
const MAX_DROPPABLE = 64;
/** Where this much waits, progress gives way as well. */
const MAX_DROPPABLE_BYTES = 256 * 1024;
/** What an entry costs beside its text. */
const ENTRY_BYTES = 128;

interface Entry {
  readonly frame: Frame;
  readonly droppable: boolean;
}

function costOf({ frame }: Entry): number {
  return lengthOf(frame) + ENTRY_BYTES;
}

/** Events that wait until their reader has taken earlier ones. */
export class FrameQueue {
  #entries: Entry[] = [];
  #bytes = 0;
  #droppable = 0;

  /** About the memory that the waiting events take; a body that other streams share counts for each. */
  get bytes(): number {
    return this.#bytes;
  }

  get empty(): boolean {
    return this.#entries.length === 0;
  }

  push(frame: Frame): void {
    this.#add({ frame, droppable: false });
  }

  /** Only the newest few of these wait; the newest always does. */
  pushDroppable(frame: Frame): void {
    this.#add({ frame, droppable: true });
    while (
      this.#droppable > 1 &&
      (this.#droppable > MAX_DROPPABLE || this.#bytes > MAX_DROPPABLE_BYTES) &&
      this.#dropOldest()
    );
  }

  shift(): Frame | undefined {
    const entry = this.#entries.shift();
    if (entry !== undefined) this.#uncount(entry);
    return entry?.frame;
  }

  clear(): void {
    this.#entries = [];
    this.#bytes = 0;
    this.#droppable = 0;
  }

  #add(entry: Entry): void {
    this.#entries.push(entry);
    this.#bytes += costOf(entry);
    if (entry.droppable) this.#droppable += 1;
  }

  #dropOldest(): boolean {
    const at = this.#entries.findIndex(({ droppable }) => droppable);
    const [entry] = at === -1 ? [] : this.#entries.splice(at, 1);
    if (entry !== undefined) this.#uncount(entry);
    return entry !== undefined;
  }

  #uncount(entry: Entry): void {
    this.#bytes -= costOf(entry);
    if (entry.droppable) this.#droppable -= 1;
  }
}
