import { SkepError } from '@skep/core/errors/skep-error.ts';
import { MAX_LINE_BYTES } from '../stdio/line-reader.ts';

/** One event of a stream (HTML, server-sent events). */
export interface ServerEvent {
  /** The last id that the stream told. */
  readonly id: string | undefined;
  /** Undefined for a plain message. */
  readonly name?: string | undefined;
  /** Empty for an event that only tells an id. */
  readonly data: string;
}

/** Cuts the text of an event stream into events. Comments and an unfinished event at the end count for nothing. */
export class EventReader {
  /** The unfinished line, in the pieces that it came in. */
  #pieces: string[] = [];
  #data: string[] = [];
  #size = 0;
  #isBegun = false;
  #id: string | undefined;
  #name: string | undefined;

  /** The events that this piece completes. Fails with `bridge/unreadable` where one has no end. */
  push(text: string): readonly ServerEvent[] {
    this.#size += text.length;
    if (this.#size > MAX_LINE_BYTES) {
      throw new SkepError('bridge/unreadable', { message: 'the server sent a message that is too large' });
    }
    const endsLine = this.#pieces.at(-1)?.endsWith('\r') === true || /[\r\n]/u.test(text);
    this.#pieces.push(text);
    if (!endsLine) return [];
    // A return at the end may be the first half of a line end.
    const lines = this.#pieces.join('').split(/\r\n|\n|\r(?!$)/u);
    this.#pieces = [lines.pop() ?? ''];
    return lines.flatMap((line) => this.#take(line));
  }

  #take(line: string): readonly ServerEvent[] {
    if (line !== '') {
      this.#field(line);
      return [];
    }
    const name = this.#name;
    this.#name = undefined;
    if (!this.#isBegun) return [];
    const event = { id: this.#id, name, data: this.#data.join('\n') };
    this.#data = [];
    this.#isBegun = false;
    this.#size = 0;
    return [event];
  }

  #field(line: string): void {
    const colon = line.indexOf(':');
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /u, '');
    if (name === 'event') this.#name = value;
    if (name === 'data') this.#data.push(value);
    else if (name === 'id' && !value.includes('\0')) this.#id = value;
    else return;
    this.#isBegun = true;
  }
}
