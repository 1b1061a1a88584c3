import type { Timer } from '@skep/core/time/clock.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { HostDeps } from './host-deps.ts';

/** After a start, when whoever asked for it has used it for the first time. */
const AFTER_MS = 100;

/** What could not be made, or removed, is tried again: after the first time, and after ever longer, at most the second. */
const AGAIN_MS = { first: 15_000, longest: 600_000 };

type Deps = Pick<HostDeps, 'spares' | 'clock' | 'log'>;

interface Started {
  readonly runtime: Runtime;
  /** What the workload runs from. */
  readonly reference: string;
}

/** What a supervisor has ready for the next workload. What cannot be made costs that time, and is made for it then. */
export class MadeAhead {
  readonly #deps: Deps;
  /** Whether what is made for this process alone is wanted. */
  readonly #isHosting: () => boolean;
  readonly #ending = new AbortController();
  /** The last of each kind of runtime that something was made ahead on. */
  readonly #runtimes = new Map<Runtime['kind'], Runtime>();
  #again: Timer | undefined;
  #againMs: number = AGAIN_MS.first;
  /** What outlives this process and is being made, by what it is made from. */
  readonly #keeping = new Map<string, Promise<unknown>>();

  constructor(deps: Deps, isHosting: () => boolean) {
    this.#deps = deps;
    this.#isHosting = isHosting;
    deps.spares?.tellWhenLeft(() => this.#tryAgain());
  }

  /** Begins to make it, behind a start. */
  begin(started: Started): void {
    if (!this.#deps.spares) return;
    this.#runtimes.set(started.runtime.kind, started.runtime);
    this.#againMs = AGAIN_MS.first;
    void this.#make(started);
  }

  async #make({ runtime, reference }: Started): Promise<void> {
    const { clock } = this.#deps;
    const { signal } = this.#ending;
    await this.#tried(() => clock.sleep(AFTER_MS, signal));
    await this.#makeSpare(runtime);
    if (runtime.keepReady === undefined || signal.aborted) return;
    const before = this.#keeping.get(reference);
    const kept = Promise.all([before, this.#tried(() => runtime.keepReady?.(reference))]);
    this.#keeping.set(reference, kept);
    await kept;
    if (this.#keeping.get(reference) === kept) this.#keeping.delete(reference);
  }

  async #makeSpare(runtime: Runtime): Promise<void> {
    if (!this.#isHosting() || this.#ending.signal.aborted) return;
    await this.#tried(() => runtime.makeSpare?.((error) => this.#note(error)));
  }

  /** Where something is made, what is left of earlier attempts is looked for. */
  #tryAgain(): void {
    if (this.#ending.signal.aborted || this.#again !== undefined) return;
    this.#again = this.#deps.clock.after(this.#againMs, () => {
      this.#again = undefined;
      for (const runtime of this.#runtimes.values()) void this.#makeSpare(runtime);
    });
    this.#againMs = Math.min(this.#againMs * 2, AGAIN_MS.longest);
  }

  async #tried(make: () => Promise<void> | undefined): Promise<void> {
    try {
      await make();
    } catch (error) {
      this.#note(error);
    }
  }

  #note(error: unknown): void {
    if (!this.#ending.signal.aborted) this.#deps.log.debug({ err: error }, 'not everything was made ahead');
  }

  /** Resolves when nothing is being made of this that outlives the process: it goes with that, if it goes. */
  async kept(reference: string): Promise<void> {
    await this.#keeping.get(reference);
  }

  /** While nothing is hosted nothing is there for this process either. What stays is removed when it ends. */
  async clear(): Promise<void> {
    if (this.#isHosting()) return;
    await this.#deps.spares?.clear().catch((error: unknown) => {
      this.#deps.log.warn({ err: error }, 'what was made ahead could not be removed');
    });
  }

  /** Nothing more is begun. */
  end(): void {
    this.#ending.abort();
    this.#again?.cancel();
  }

  /** Removes what is for this process alone. Fails as `remove` of a `Spare` does. */
  async close(): Promise<void> {
    this.end();
    await Promise.all(this.#keeping.values());
    await this.#deps.spares?.close();
  }
}
