import type { ClaimClass, ClaimSet } from '../access/claim-set.ts';

/**
 * Gives every distinct claim set a small number, and counts its uses. Snapshots that follow one another share it as long
 * as every set is in use; then the next one starts anew, so it cannot grow.
 */
export class ClaimClasses {
  readonly #classes = new Map<ClaimSet, ClaimClass>();
  readonly #uses: number[] = [];
  #unused = 0;

  /** The number of a claim set that one more candidate has. */
  use(claims: ClaimSet): ClaimClass {
    const claimClass = this.#classes.get(claims) ?? this.#add(claims);
    const uses = this.#uses[claimClass] ?? 0;
    if (uses === 0) this.#unused -= 1;
    this.#uses[claimClass] = uses + 1;
    return claimClass;
  }

  /** One candidate less has it. */
  release(claimClass: ClaimClass): void {
    const left = (this.#uses[claimClass] ?? 0) - 1;
    this.#uses[claimClass] = left;
    if (left === 0) this.#unused += 1;
  }

  /** Whether some set has no candidate any more. */
  get hasUnused(): boolean {
    return this.#unused > 0;
  }

  get size(): number {
    return this.#uses.length;
  }

  /** Claim sets in class order, for deciding once per caller which classes are visible. */
  all(): ClaimSet[] {
    return [...this.#classes.keys()];
  }

  #add(claims: ClaimSet): ClaimClass {
    const next = this.#uses.push(0) - 1;
    this.#classes.set(claims, next);
    this.#unused += 1;
    return next;
  }
}
