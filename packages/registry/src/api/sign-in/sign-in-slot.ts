import type { Clock } from '@skep/core/time/clock.ts';
import type { SignIn } from './sign-in.ts';

/** Longer than any request may wait for an identity provider. */
const GRACE_MS = 30_000;

/** How callers are told apart now. What is replaced stays open for a while, for the requests that wait for its answer. */
export class SignInSlot {
  readonly #clock: Clock;
  readonly #former = new Set<() => void>();
  #current: SignIn;
  #away: readonly string[] = [];

  constructor(first: SignIn, clock: Clock) {
    this.#current = first;
    this.#clock = clock;
  }

  get current(): SignIn {
    return this.#current;
  }

  /** Asks every identity provider for its keys; what cannot be had is logged. */
  askProviders(): void {
    const asked = this.#current;
    if (asked.kind === 'open') return;
    void asked.verifier.ready().then((away) => {
      if (this.#current === asked) this.#away = away;
    });
  }

  /** Names of the identity providers that did not answer when they were asked; asks once more. */
  away(): readonly string[] {
    if (this.#away.length > 0) this.askProviders();
    return this.#away;
  }

  replace(next: SignIn): void {
    this.#away = [];
    const before = this.#current;
    this.#current = next;
    const end = (): void => {
      cancel();
      this.#former.delete(end);
      endSignIn(before);
    };
    const { cancel } = this.#clock.after(GRACE_MS, end);
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
