import type { Log } from '@skep/core/log/log.ts';
import { idMeantBy, readBatch, readMessage, type Message, type Unreadable } from '../../message/json-rpc.ts';
import type { Waiter } from '../port.ts';

const LOG_EXCERPT = 200;

export interface LinesOptions {
  readonly log: Log;
  /** `about` as in `LinkEvents`. */
  route(message: Message, about: string | undefined): void;
  /** The request of that id ends with what is done with its waiter; undefined where there is none. */
  fail(id: string): Waiter | undefined;
}

/** Reads the lines of a server, which may write anything: a fault costs the line that it is in, and no other. */
export class Lines {
  readonly #options: LinesOptions;
  #toldOfBatches = false;

  constructor(options: LinesOptions) {
    this.#options = options;
  }

  take(line: string, about?: string): void {
    try {
      const read = readMessage(line);
      if (read === 'batch') this.#batch(line, about);
      else this.#one(read, line, about);
    } catch (error) {
      this.#options.log.error({ err: error }, 'a line of the server could not be handled');
    }
  }

  #one(read: Message | Unreadable, line: string, about: string | undefined): void {
    const { log } = this.#options;
    if (typeof read !== 'string') this.#options.route(read, about);
    else if (!this.#failUnreadable(line, read) && line.trim() !== '') {
      log.debug({ line: line.slice(0, LOG_EXCERPT), why: read }, 'skipped a line of the server');
    }
  }

  /** An answer that nobody may read ends its call at once, not when its time is over. */
  #failUnreadable(line: string, why: Unreadable): boolean {
    const { log } = this.#options;
    const waiter = why === 'not-json' ? undefined : this.#options.fail(idMeantBy(line) ?? '');
    waiter?.fail('proxy/bad-gateway');
    if (waiter) log.warn({ why }, 'the server gave an answer that cannot be passed on');
    return waiter !== undefined;
  }

  /** Clients wait for the answers in it, whatever revision was agreed, so its messages are taken one by one. */
  #batch(line: string, about: string | undefined): void {
    const { log } = this.#options;
    if (!this.#toldOfBatches) {
      this.#toldOfBatches = true;
      log.warn({}, 'the server writes several messages as one array, which only MCP 2025-03-26 allows');
    }
    for (const read of readBatch(line)) {
      if (typeof read === 'string') log.warn({ why: read }, 'skipped an element of an array of the server');
      else this.#options.route(read, about);
    }
  }
}
