import type { Writable } from 'node:stream';

/** What may wait while the server does not read its stdin: as many as may be unanswered. */
const MAX_WAITING = 4096;
const MAX_WAITING_CHARACTERS = 16 * 1024 * 1024;
/** So much is written without waiting for more. */
const BATCH_CHARACTERS = 64 * 1024;

/**
 * Writes lines to the server's stdin without an endless buffer in front of a server that does not read. Lines of one turn
 * of the event loop go together: each write wakes the engine or the server at its other end, which costs both sides more
 * than everything else about a call.
 */
export class WriteQueue {
  readonly #stdin: Writable;
  #waiting: string[] = [];
  #characters = 0;
  #turn: NodeJS.Immediate | undefined;

  constructor(stdin: Writable) {
    this.#stdin = stdin;
    stdin.on('drain', () => this.flush());
  }

  /** False when the line was not taken because the queue is full. */
  write(line: string): boolean {
    if (this.#waiting.length >= MAX_WAITING || this.#characters + line.length > MAX_WAITING_CHARACTERS)
      return false;
    this.#waiting.push(line);
    this.#characters += line.length;
    if (this.#characters >= BATCH_CHARACTERS) this.flush();
    else this.#turn ??= setImmediate(() => this.flush());
    return true;
  }

  /** Hands over what waits, as far as the server reads. */
  flush(): void {
    clearImmediate(this.#turn);
    this.#turn = undefined;
    while (this.#waiting.length > 0 && this.#stdin.writable && !this.#stdin.writableNeedDrain) {
      this.#stdin.write(`${this.#batch().join('\n')}\n`);
    }
  }

  /** The oldest lines, at least one and about as much as goes in one write. */
  #batch(): readonly string[] {
    let characters = 0;
    let count = 0;
    for (const { length } of this.#waiting) {
      characters += length;
      count += 1;
      if (characters >= BATCH_CHARACTERS) break;
    }
    this.#characters -= characters;
    return this.#waiting.splice(0, count);
  }
}
