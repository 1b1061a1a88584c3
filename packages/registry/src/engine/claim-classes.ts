/**
 * Claims of an entry, as canonical JSON (sorted keys, sorted unique arrays); the empty text is "no claims". Equal claims
 * have equal text, so thousands of entries share a handful of sets.
 */
export type ClaimSet = string;

export const NO_CLAIMS: ClaimSet = '';

/** Index of a claim set within one snapshot: what the page walk compares instead of claims. */
export type ClaimClass = number;

/** Gives every distinct claim set of a snapshot a small number. Lives as long as its snapshot, so it cannot grow. */
export class ClaimClasses {
  readonly #classes = new Map<ClaimSet, ClaimClass>();

  classOf(claims: ClaimSet): ClaimClass {
    const known = this.#classes.get(claims);
    if (known !== undefined) return known;
    const next = this.#classes.size;
    this.#classes.set(claims, next);
    return next;
  }

  /** Claim sets in class order, for deciding once per caller which classes are visible. */
  all(): ClaimSet[] {
    return [...this.#classes.keys()];
  }
}
