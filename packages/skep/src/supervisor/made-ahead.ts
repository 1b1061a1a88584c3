import type { Timer } from '@skep/core/time/clock.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { HostDeps } from './host-deps.ts';

/** After a start, when whoever asked for it has used it for the first time. */
const AFTER_MS = 100;

/** An engine that was away, or could not remove something, is asked again; each time that costs it some listing. */
const LOOK_AGAIN_MS = 15_000;

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
  #look: Timer | undefined;
  /** What outlives this process and is being made, by what it is made from. */
  readonly #keeping = new Map<string, Promise<unknown>>();

  constructor(deps: Deps, isHosting: () => boolean) {
    this.#deps = deps;
    this.#isHosting = isHosting;
    deps.spares?.tellWhenLeft(() => this.#lookLater());
  }

  /** Begins to make it, behind a start. */
  begin(started: Started): void {
    if (!this.#deps.spares) return;
    this.#runtimes.set(started.runtime.kind, started.runtime);
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

  /** What is left of networks that were being made, or removed, is looked for where one is made. */
  #lookLater(): void {
    if (this.#ending.signal.aborted) return;
    this.#look ??= this.#deps.clock.after(LOOK_AGAIN_MS, () => {
      this.#look = undefined;
      for (const runtime of this.#runtimes.values()) void this.#makeSpare(runtime);
    });
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
    this.#look?.cancel();
  }

  /** Removes what is for this process alone. Fails as `remove` of a `Spare` does. */
  async close(): Promise<void> {
    this.end();
    await Promise.all(this.#keeping.values());
    await this.#deps.spares?.close();
  }
}
