/** Runs one piece of work at a time; however often it is asked for meanwhile, it runs once more afterwards. */
export class Repeated {
  readonly #work: () => Promise<void>;
  #running: Promise<void> | undefined;
  #again = false;

  /** `work` must not fail. */
  constructor(work: () => Promise<void>) {
    this.#work = work;
  }

  /** Resolves when work that began after this call has ended. */
  request(): Promise<void> {
    if (this.#running === undefined) this.#running = this.#run();
    else this.#again = true;
    return this.#running;
  }

  async #run(): Promise<void> {
    do {
      this.#again = false;
      await this.#work();
    } while (this.#again);
    this.#running = undefined;
  }
}
