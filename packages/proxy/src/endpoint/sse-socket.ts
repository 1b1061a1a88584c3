import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Clock, Timer } from '@skep/core/time/clock.ts';
import type { Frame } from './event.ts';
import { FrameQueue } from './frame-queue.ts';
import type { UnreadBudget } from './unread-budget.ts';

/** A comment every 30 s on each open stream: some clients give up on a silent body. */
const KEEP_ALIVE_MS = 30_000;
/** A client that leaves this much unread is cut off; it may resume. An answer, the last of its stream, may be larger. */
const MAX_UNREAD_BYTES = 1024 * 1024;

export const SSE_HEAD: OutgoingHttpHeaders = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-cache',
  Connection: 'keep-alive',
  'X-Accel-Buffering': 'no',
};

export interface SseSocketOptions {
  readonly clock: Clock;
  readonly budget: UnreadBudget;
  readonly headers?: OutgoingHttpHeaders | undefined;
}

/** Writes events to one HTTP response. The head goes out with the first event, or by `start`. */
export class SseSocket {
  readonly #res: ServerResponse;
  readonly #options: SseSocketOptions;
  /** What the client is not ready to take: waiting here, events are shared between streams and freed with the stream. */
  readonly #queue = new FrameQueue();
  #ending = false;
  #keepAlive: Timer | undefined;

  constructor(res: ServerResponse, options: SseSocketOptions) {
    this.#res = res;
    this.#options = options;
    res.once('close', () => {
      this.#keepAlive?.cancel();
      this.#queue.clear();
      options.budget.release(this);
    });
  }

  /** True until the client has gone or the stream was ended. */
  get open(): boolean {
    return !this.#ending && !this.#res.writableEnded && !this.#res.destroyed;
  }

  /** Bytes that the client has not taken yet. */
  get unread(): number {
    return this.#queue.bytes + this.#res.writableLength;
  }

  onClose(listener: () => void): void {
    this.#res.once('close', listener);
  }

  /** Disconnects the client. */
  cut(): void {
    this.#res.destroy();
  }

  /** Sends the head, and `prelude` with it. */
  start(prelude = ''): void {
    if (this.#res.headersSent || !this.open) return;
    this.#res.writeHead(200, this.#head());
    if (prelude === '') this.#res.flushHeaders();
    else this.#res.write(prelude);
    this.#res.on('drain', () => this.#flush());
    this.#keepAlive = this.#options.clock.every(KEEP_ALIVE_MS, () => {
      if (this.open && !this.#res.writableNeedDrain) this.#res.write(': keep-alive\n\n');
    });
  }

  /** Writes in order; a reader too far behind is disconnected rather than fed from an endless buffer. */
  write(...frames: readonly Frame[]): void {
    this.start();
    if (!this.open) return;
    if (this.#queue.bytes > MAX_UNREAD_BYTES) {
      this.cut();
      return;
    }
    for (const frame of frames) this.#queue.push(frame);
    this.#flush();
  }

  /** Writes at once to a reader that keeps up; for a slow one only the newest few are kept. */
  writeDroppable(frame: Frame): void {
    this.start();
    if (!this.open) return;
    this.#queue.pushDroppable(frame);
    this.#flush();
  }

  /** Ends the stream with `text`, after what still waits; one that was never started goes out in one piece. */
  end(text = ''): void {
    if (!this.open) return;
    if (!this.#res.headersSent) {
      this.#res.writeHead(200, { ...this.#head(), 'Content-Length': Buffer.byteLength(text) });
    }
    this.#ending = true;
    if (text !== '') this.#queue.push({ lead: '', body: text });
    this.#flush();
  }

  #head(): OutgoingHttpHeaders {
    return { ...SSE_HEAD, ...this.#options.headers };
  }

  /** Hands over as much as the client takes, and the end behind the last of it. */
  #flush(): void {
    const res = this.#res;
    if (res.destroyed) return;
    while (!this.#queue.empty && !res.writableNeedDrain) this.#put(this.#queue.shift());
    if (this.#ending && this.#queue.empty && !res.writableEnded) res.end();
    this.#options.budget.update(this);
  }

  #put(frame: Frame | undefined): void {
    if (frame === undefined) return;
    const bytes = onWire(frame);
    if (this.#ending && this.#queue.empty) this.#res.end(bytes);
    else this.#res.write(bytes);
  }
}

/** A shared body is copied only here, when the client takes it. */
function onWire({ lead, body }: Frame): string | Buffer {
  return typeof body === 'string' ? lead + body : Buffer.concat([Buffer.from(lead), body]);
}
