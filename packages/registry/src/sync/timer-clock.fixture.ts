import type { Clock } from './clock.ts';

/** Time that passes only when a test says so; what is due then is called in order. */
export class TimerClock implements Clock {
  #milliseconds = Date.parse('2026-01-01T00:00:00.000Z');
  readonly #timers = new Set<{ readonly due: number; readonly callback: () => void }>();

  now(): string {
    return new Date(this.#milliseconds).toISOString();
  }

  after(milliseconds: number, callback: () => void): () => void {
    const timer = { due: this.#milliseconds + milliseconds, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Milliseconds until the next timer; undefined when none waits. */
  get nextIn(): number | undefined {
    const dues = [...this.#timers].map(({ due }) => due);
    return dues.length === 0 ? undefined : Math.min(...dues) - this.#milliseconds;
  }

  /** How many timers wait. */
  get waiting(): number {
    return this.#timers.size;
  }

  pass(milliseconds: number): void {
    const end = this.#milliseconds + milliseconds;
    for (;;) {
      const [next] = [...this.#timers].filter(({ due }) => due <= end).toSorted((a, b) => a.due - b.due);
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#milliseconds = Math.max(this.#milliseconds, next.due);
      next.callback();
    }
    this.#milliseconds = end;
  }
}
