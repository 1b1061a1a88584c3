import type { Clock } from '@skep/core/time/clock.ts';
import type { ReplayBuffer } from './replay.ts';
import { bodyOf, emptyEvent, idLine, type Frame } from './event.ts';
import type { SseSocket } from './sse-socket.ts';

/** What makes a stream resumable: a name within its session and a place to keep events. */
export interface Resumable {
  readonly id: string;
  readonly buffer: ReplayBuffer;
  /** Open with an empty event, so that a client can resume before the first message. */
  readonly emptyFirst: boolean;
}

/** One sequence of events to a client. With `resumable` it outlives its socket and goes on over another. */
export class EventStream {
  readonly #clock: Clock;
  readonly #resumable: Resumable | undefined;
  #socket: SseSocket | undefined;
  #prelude: string;
  #sequence = 0;
  #ended = false;

  constructor(clock: Clock, resumable?: Resumable) {
    this.#clock = clock;
    this.#resumable = resumable;
    this.#prelude = resumable?.emptyFirst === true ? emptyEvent(`${resumable.id}-0`) : '';
  }

  get id(): string | undefined {
    return this.#resumable?.id;
  }

  /** A client is reading now. */
  get live(): boolean {
    return !this.#ended && this.#socket?.open === true;
  }

  /** What is sent now is read now or can be read later. */
  get reachable(): boolean {
    return !this.#ended && (this.#resumable !== undefined || this.live);
  }

  /** Goes on over `socket`, after `missed` frames; a socket from before is closed. */
  attach(socket: SseSocket, missed: readonly Frame[] = []): void {
    this.#socket?.end();
    this.#socket = socket;
    // What a client that has gone did not read must not be kept for it.
    socket.onClose(() => {
      if (this.#socket === socket) this.#socket = undefined;
    });
    if (missed.length === 0) return;
    this.#prelude = '';
    socket.write(...missed);
  }

  /** Sends the head without waiting for a message. */
  start(): void {
    this.#socket?.start(this.#takePrelude());
  }

  /** Sends the event with that body (event.ts). Of what is droppable a slow reader may miss some. */
  send(body: Frame['body'], droppable = false): void {
    const frame = this.#framed(body);
    if (droppable) this.#socket?.writeDroppable(frame);
    else this.#socket?.write(frame);
  }

  /** Ends with a last message, or without one. */
  end(text?: string): void {
    if (this.#ended) return;
    const last = this.finalText(text);
    this.#socket?.end(last);
    this.#socket = undefined;
  }

  /** Ends, and gives back what is still to be sent: everything, of a stream that has sent nothing. */
  finalText(text?: string): string {
    const body = text === undefined ? '' : bodyOf(text);
    const lead = text === undefined ? this.#takePrelude() : this.#framed(body).lead;
    this.#ended = true;
    return lead + body;
  }

  #framed(body: Frame['body']): Frame {
    if (this.#resumable === undefined || this.#ended) return { lead: '', body };
    const { id, buffer } = this.#resumable;
    this.#sequence += 1;
    const frame = { lead: idLine(`${id}-${this.#sequence}`), body };
    buffer.add({ stream: id, sequence: this.#sequence, frame, at: this.#clock.elapsed() });
    const prelude = this.#takePrelude();
    return prelude === '' ? frame : { lead: prelude + frame.lead, body };
  }

  #takePrelude(): string {
    const prelude = this.#prelude;
    this.#prelude = '';
    return prelude;
  }
}
