import { errnoOf } from '@skep/core/files/errno.ts';
import type { Log } from '@skep/core/log/log.ts';
import type { Clock, Timer } from '@skep/core/time/clock.ts';
import type { SignInState } from '@skep/auth/sign-in/port.ts';
import type { Condition } from '../backend.ts';

/** How a server that speaks HTTP is looked after; milliseconds. */
export interface HealthSettings {
  readonly healthIntervalMs: number;
  /** What one look may take. */
  readonly healthTimeoutMs: number;
  /** Before it is looked at again after a failure. */
  readonly healthRetryMs: number;
  /** So many failures in a row make it one that fails. */
  readonly healthThreshold: number;
}

interface ServerHealthOptions extends HealthSettings {
  /** Asks the server for its root, whatever it answers: the status. Absent where it is not looked at. */
  readonly probe?: (signal: AbortSignal) => Promise<number>;
  /** A server elsewhere may want to know who asks. */
  readonly isRemote: boolean;
  readonly tell: (condition: Condition) => void;
  readonly clock: Clock;
  readonly log: Log;
}

/** A pause that is so much longer than it was to be says that the machine slept. */
const SLEPT_MS = 30_000;

/**
 * How a server is, by what it answers and, from its first success on, by looking at it (docs/behaviour/proxy.md#health). It
 * ends nothing: a server that fails is asked and looked at as any other, and is fine again with the first success.
 */
export class ServerHealth {
  readonly #options: ServerHealthOptions;
  #condition: Condition = 'fine';
  #failures = 0;
  #next: Timer | undefined;
  #looking: AbortController | undefined;
  #isOver = false;
  /** The last look. */
  #seen: { readonly at: number; readonly tookMs: number; readonly error?: string } | undefined;

  constructor(options: ServerHealthOptions) {
    this.#options = options;
  }

  get condition(): Condition {
    return this.#condition;
  }

  get seen(): { readonly at: number; readonly tookMs: number; readonly error?: string } | undefined {
    return this.#seen;
  }

  /** The status of an answer to a client, or to whoever runs the proxy. */
  answered(status: number): void {
    if (status === 401 && this.#options.isRemote) this.#become('unauthenticated');
    else if (status < 400) {
      this.#failures = 0;
      this.#become('fine');
      if (this.#next === undefined && this.#looking === undefined)
        this.#lookIn(this.#options.healthIntervalMs);
    }
  }

  /** How the token that the server is shown is. Whether it is good the server says. */
  signedIn(state: SignInState): void {
    if (state !== 'running') this.#become(state);
    else if (this.#condition === 'auth_retrying' || this.#condition === 'unauthenticated')
      this.#become('fine');
  }

  /** The process behind it has ended: whoever watches that says so. */
  pause(): void {
    this.#stop();
    this.#failures = 0;
    this.#condition = 'fine';
  }

  /** Idempotent. */
  close(): void {
    this.#isOver = true;
    this.#stop();
  }

  #stop(): void {
    this.#next?.cancel();
    this.#looking?.abort();
    this.#next = undefined;
    this.#looking = undefined;
  }

  #lookIn(delayMs: number): void {
    const { probe, clock } = this.#options;
    if (probe === undefined || this.#isOver) return;
    const since = clock.now();
    this.#next = clock.after(delayMs, () => {
      // What failed before the machine slept says nothing of now.
      if (clock.now() - since > delayMs + SLEPT_MS) this.#failures = 0;
      this.#next = undefined;
      void this.#look(probe);
    });
  }

  /** Never rejects. */
  async #look(probe: NonNullable<ServerHealthOptions['probe']>): Promise<void> {
    const { clock, log, healthTimeoutMs, healthIntervalMs, healthRetryMs, healthThreshold } = this.#options;
    const looking = new AbortController();
    this.#looking = looking;
    const late = clock.after(healthTimeoutMs, () => looking.abort());
    const began = clock.elapsed();
    const error = await probe(looking.signal).then(
      (status) => (status >= 200 && status < 500 ? undefined : `it answers with status ${status}`),
      (cause: unknown) => errnoOf(cause) ?? 'it does not answer',
    );
    late.cancel();
    if (this.#looking !== looking) return;
    this.#looking = undefined;
    this.#seen = { at: clock.now(), tookMs: Math.round(clock.elapsed() - began), ...(error && { error }) };
    this.#failures = error === undefined ? 0 : this.#failures + 1;
    if (error !== undefined) log.debug({ error, failures: this.#failures }, 'a look at the server failed');
    if (this.#failures >= healthThreshold) this.#become('failing');
    else if (error === undefined && this.#condition === 'failing') this.#become('fine');
    this.#lookIn(error === undefined ? healthIntervalMs : healthRetryMs);
  }

  #become(condition: Condition): void {
    if (condition === this.#condition) return;
    this.#condition = condition;
    this.#options.log.info({ condition }, 'the condition of the server has changed');
    this.#options.tell(condition);
  }
}
