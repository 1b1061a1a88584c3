import type { Writable } from 'node:stream';

/** What may wait while the server does not read its stdin (spec run-proxy §1.3.5): as many as may be unanswered. */
const WAITING_LIMIT = 4096;
const WAITING_CHARACTERS = 16 * 1024 * 1024;

/** Writes lines to the server's stdin without an endless buffer in front of a server that does not read. */
export class WriteQueue {
  readonly #stdin: Writable;
  #waiting: string[] = [];
  #characters = 0;

  constructor(stdin: Writable) {
    this.#stdin = stdin;
    stdin.on('drain', () => this.#flush());
  }

  /** False when the line was not taken because the queue is full. */
  write(line: string): boolean {
    if (!this.#stdin.writableNeedDrain) {
      this.#stdin.write(`${line}\n`);
      return true;
    }
    if (this.#waiting.length >= WAITING_LIMIT || this.#characters + line.length > WAITING_CHARACTERS)
      return false;
    this.#waiting.push(line);
    this.#characters += line.length;
    return true;
  }

  #flush(): void {
    while (this.#waiting.length > 0 && !this.#stdin.writableNeedDrain) {
      const line = this.#waiting.shift() ?? '';
      this.#characters -= line.length;
      this.#stdin.write(`${line}\n`);
    }
  }
}
