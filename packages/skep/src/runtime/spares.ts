/** What was made ahead of the workload that will have it. */
export interface Spare {
  readonly id: string;
  readonly name: string;
  /** What the engine that has it said of itself (decision 0469); undefined where it was not asked, or has not answered. */
  readonly said?: unknown;
  /** Id of a container that holds it open, once there is one (decision 0470). */
  readonly holder?: string | undefined;
  /** Removes that container, or does without one that is still being made; idempotent. */
  readonly dropHolder?: () => Promise<void>;
  /** Idempotent. */
  readonly remove: () => Promise<void>;
}

interface Maker {
  readonly pid: number;
  /** When it started; only ever compared. */
  readonly started: string;
}

/** Whose they are: of this process. */
export interface SparesOf {
  readonly self: Maker;
  readonly isAlive: (maker: Maker) => boolean;
}

/**
 * What takes long to make, made ahead of the next workload: one for each key, in the one process that may hand it out, which
 * removes what is left of itself and of processes that are gone.
 */
export class Spares {
  /** To be written on what is made, for other processes; empty where there are none. */
  readonly maker: string;
  readonly #isAlive: SparesOf['isAlive'];
  readonly #ready = new Map<string, Promise<Spare>>();
  /** Keys of which nothing is left that this process knows nothing of. */
  readonly #known = new Set<string>();
  /** What workloads had when they were last seen, by whatever names both: nothing else knows once somebody has removed one. */
  readonly had = new Map<string, string>();
  /** Ids of those that are ready, or on their way to a workload. */
  readonly #out = new Set<string>();
  /** What those will be called that are being made. */
  readonly #coming = new Map<Promise<Spare>, string | undefined>();
  #whenLeft: () => void = () => {};
  #closed = false;

  constructor(of?: SparesOf) {
    this.maker = of ? textOf(of.self) : '';
    this.#isAlive = of?.isAlive ?? (() => false);
  }

  /** Makes one, unless one is there; `name` where that is known before it is made. Fails as `make` does. */
  async make(key: string, make: () => Promise<Spare>, name?: string): Promise<void> {
    if (this.#closed || this.#ready.has(key)) return;
    const making = make();
    this.#coming.set(making, name);
    this.#ready.set(key, making);
    try {
      this.#out.add((await making).id);
    } catch (error) {
      if (this.#ready.get(key) === making) this.#ready.delete(key);
      this.lookAgain();
      throw error;
    } finally {
      this.#coming.delete(making);
    }
  }

  /**
   * True where something may be left by a process that was killed, or by an attempt of this one that failed: it may be removed
   * then, as far as it `isLeft`. Whoever asks looks for it; nobody else is told so until there is a reason again.
   */
  mayBeLeft(key: string): boolean {
    if (this.#closed || this.#known.has(key)) return false;
    // What is being made is known by its id only when it is there.
    if (this.#coming.size > 0) {
      this.#whenLeft();
      return false;
    }
    this.#known.add(key);
    return true;
  }

  /** True unless it is ready here, or on its way to a workload, or another process that runs has made it and may use it yet. */
  isLeft(id: string, maker: string): boolean {
    if (this.#out.has(id)) return false;
    if (maker === this.maker || !isRunning(maker, this.#isAlive)) return true;
    this.lookAgain();
    return false;
  }

  /** Something may be left that was not removed. */
  lookAgain(): void {
    this.#known.clear();
    this.#whenLeft();
  }

  /** Has one be told whenever something may be left, who sees to it that somebody looks. */
  tellWhenLeft(listener: () => void): void {
    this.#whenLeft = listener;
  }

  /** One that was taken has come to its workload, or else may be left. */
  arrived(id: string, came: boolean): void {
    if (this.#out.delete(id) && !came) this.lookAgain();
  }

  /** What the one will be called that is being made; undefined where none is, or that is not known yet. */
  nameOfComing(key: string): string | undefined {
    const making = this.#ready.get(key);
    return making && this.#coming.get(making);
  }

  /** The one that is ready, which stays here; undefined where none is, or it is being made. */
  async peek(key: string): Promise<Spare | undefined> {
    const one = this.#ready.get(key);
    return one && this.#coming.has(one) ? undefined : one;
  }

  /** The one that is ready, or is being made: its caller's alone from now on. Undefined where there is none. */
  async take(key: string): Promise<Spare | undefined> {
    const one = this.#ready.get(key);
    this.#ready.delete(key);
    return one?.catch(() => undefined);
  }

  /** Removes what is ready. Fails as `remove` does. */
  async clear(): Promise<void> {
    const all = await Promise.all([...this.#ready.keys()].map((key) => this.take(key)));
    await Promise.all(all.flatMap((one) => (one === undefined ? [] : [this.#remove(one)])));
  }

  async #remove({ id, remove }: Spare): Promise<void> {
    this.arrived(id, false);
    await remove();
  }

  /** As `clear`; nothing is made any more. */
  close(): Promise<void> {
    this.#closed = true;
    return this.clear();
  }
}

/** Whether the process runs that wrote its name on what it made. */
export function isRunning(maker: string, isAlive: SparesOf['isAlive']): boolean {
  const [, pid, started] = /^(\d+) (.+)$/.exec(maker) ?? [];
  return started !== undefined && isAlive({ pid: Number(pid), started });
}

const textOf = ({ pid, started }: Maker): string => `${pid} ${started}`;
