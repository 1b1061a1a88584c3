/** More than that are of servers that begin sessions for everybody who asks. */
const MAX_SESSIONS = 16_384;

/** Whose a server's sessions are, by their ids, as far as the proxy saw them begin or be used. */
export class SessionOwners {
  readonly #ownerOf = new Map<string, string>();
  /** The oldest first. */
  readonly #idsOf = new Map<string, Set<string>>();
  readonly #most: number;

  constructor(most = MAX_SESSIONS) {
    this.#most = most;
  }

  /** True where it is that principal's, or nobody's yet. */
  isOpenTo(id: string, principal: string): boolean {
    const owner = this.#ownerOf.get(id);
    return owner === undefined || owner === principal;
  }

  has(id: string, principal: string): boolean {
    return this.#ownerOf.get(id) === principal;
  }

  /** The first who has it keeps it. */
  claim(id: string, principal: string): void {
    if (this.#ownerOf.has(id)) return;
    if (this.#ownerOf.size >= this.#most) this.#forgetOldest();
    this.#ownerOf.set(id, principal);
    const ids = this.#idsOf.get(principal) ?? new Set();
    this.#idsOf.set(principal, ids.add(id));
  }

  forget(id: string): void {
    const owner = this.#ownerOf.get(id);
    if (owner === undefined) return;
    this.#ownerOf.delete(id);
    const ids = this.#idsOf.get(owner);
    ids?.delete(id);
    if (ids?.size === 0) this.#idsOf.delete(owner);
  }

  /** Of the principal with the most, so that nobody drives out the sessions of others. */
  #forgetOldest(): void {
    let most: Set<string> = new Set();
    for (const ids of this.#idsOf.values()) if (ids.size > most.size) most = ids;
    for (const oldest of most) {
      this.forget(oldest);
      return;
    }
  }
}
