import type { Clock } from '../sync/clock.ts';
import type { SignIn } from './sign-in.ts';

/** Longer than any request may wait for an identity provider. */
const GRACE_MS = 30_000;

/** How callers are told apart now. What is replaced stays open for a while, for the requests that wait for its answer. */
export class SignInSlot {
  readonly #clock: Clock;
  readonly #former = new Set<() => void>();
  #current: SignIn;

  constructor(first: SignIn, clock: Clock) {
    this.#current = first;
    this.#clock = clock;
  }

  get current(): SignIn {
    return this.#current;
  }

  replace(next: SignIn): void {
    const before = this.#current;
    this.#current = next;
    const end = (): void => {
      cancel();
      this.#former.delete(end);
      endSignIn(before);
    };
    const cancel = this.#clock.after(GRACE_MS, end);
    this.#former.add(end);
  }

  /** Idempotent. */
  close(): void {
    for (const end of this.#former) end();
    endSignIn(this.#current);
  }
}

export function endSignIn(signIn: SignIn): void {
  if (signIn.kind === 'bearer') signIn.close();
}
