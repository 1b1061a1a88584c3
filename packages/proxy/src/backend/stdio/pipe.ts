import type { Readable } from 'node:stream';
import { hasCode } from '@skep/core/errors/skep-error.ts';
import type { Clock, Timer } from '@skep/core/time/clock.ts';
import type { StdioBackend, StdioStreams } from '../backend.ts';
import type { Link, LinkEvents } from '../link.ts';
import type { PortState } from '../port.ts';
import { LineReader } from './line-reader.ts';
import { WriteQueue } from './write-queue.ts';

const TRIES = 10;
const FIRST_DELAY_MS = 2_000;
const LONGEST_DELAY_MS = 30_000;

/** Who writes so much at a time is read one piece per turn, because one process hosts all workloads. */
const FLOOD_BYTES = 16 * 1024;

function letOthersRun(stdout: Readable): void {
  stdout.pause();
  setImmediate(() => stdout.resume());
}

export interface PipeOptions extends Pick<LinkEvents, 'log' | 'onLine' | 'onBroken' | 'onAttachedAgain'> {
  readonly backend: StdioBackend;
  readonly clock: Clock;
}

interface Attached {
  readonly streams: StdioStreams;
  readonly queue: WriteQueue;
}

/** The pipe to the server, attached again with growing delays when it breaks (docs/behaviour/proxy.md#the-pipe). */
export class Pipe implements Link {
  readonly #options: PipeOptions;
  #attached: Attached | undefined;
  #state: PortState = 'attaching';
  #retry: Timer | undefined;
  #closed = false;
  /** Tells a late answer of an abandoned attempt from the current one. */
  #attempt = 0;

  constructor(options: PipeOptions) {
    this.#options = options;
  }

  get state(): PortState {
    return this.#state;
  }

  async attach(): Promise<void> {
    const attempt = (this.#attempt += 1);
    const streams = await this.#options.backend.attach();
    if (attempt !== this.#attempt || this.#closed) streams.close();
    else this.#use(streams);
  }

  write(line: string): boolean {
    return this.#attached?.queue.write(line) ?? false;
  }

  /** The server runs anew: let go of the old streams and attach to the new ones at once. */
  restarted(): void {
    this.#letGo();
    this.#state = 'attaching';
    void this.#try(1);
  }

  /** The server's process has ended: there is nothing to attach to until `restarted`. */
  ended(): void {
    this.#letGo();
    this.#state = 'lost';
  }

  close(): void {
    this.#closed = true;
    this.#letGo();
    this.#state = 'lost';
  }

  #letGo(): void {
    this.#attempt += 1;
    this.#retry?.cancel();
    const attached = this.#attached;
    this.#attached = undefined;
    attached?.queue.flush();
    attached?.streams.close();
  }

  #use(streams: StdioStreams): void {
    const { log } = this.#options;
    const mine: Attached = { streams, queue: new WriteQueue(streams.stdin) };
    const reader = new LineReader({
      line: (text) => this.#options.onLine(text),
      tooLong: () => log.warn({}, 'dropped an over-long line of the server'),
    });
    const broken = (): void => {
      if (this.#attached === mine) this.#broken();
    };
    streams.stdout.on('data', (chunk: Buffer) => {
      if (this.#attached !== mine) return;
      reader.push(chunk);
      if (chunk.length >= FLOOD_BYTES) letOthersRun(streams.stdout);
    });
    for (const event of ['end', 'close', 'error']) streams.stdout.on(event, broken);
    for (const event of ['close', 'error']) streams.stdin.on(event, broken);
    this.#attached = mine;
    this.#state = 'attached';
  }

  #broken(): void {
    this.#letGo();
    this.#state = 'attaching';
    this.#options.log.warn({}, 'the pipe to the server broke');
    this.#tryLater(1);
    try {
      this.#options.onBroken();
    } catch (error) {
      this.#options.log.error({ err: error }, 'what waited for the server could not be told');
    }
  }

  /** The second attempt waits as long as the first, each further one twice as long as the one before. */
  #tryLater(attemptNumber: number): void {
    const delayMs = Math.min(FIRST_DELAY_MS * 2 ** Math.max(attemptNumber - 2, 0), LONGEST_DELAY_MS);
    if (!this.#closed) this.#retry = this.#options.clock.after(delayMs, () => void this.#try(attemptNumber));
  }

  async #try(attemptNumber: number): Promise<void> {
    if (this.#closed) return;
    const { log } = this.#options;
    const attempt = this.#attempt + 1;
    try {
      await this.attach();
      if (this.#state !== 'attached') return;
      log.info({ attempt: attemptNumber }, 'attached to the server again');
      this.#options.onAttachedAgain();
    } catch (error) {
      if (attempt !== this.#attempt || this.#closed) return;
      if (attemptNumber >= TRIES || hasCode(error, 'proxy/backend-gone')) {
        this.#state = 'lost';
        log.error({ err: error, attempts: attemptNumber }, 'gave up attaching to the server');
        return;
      }
      log.warn({ err: error, attempt: attemptNumber }, 'could not attach to the server');
      this.#tryLater(attemptNumber + 1);
    }
  }
}
