/** How one database spells what the statements of a migration need. */
export interface SqlWords {
  /** Text that compares bytewise. */
  readonly text: string;
  /** At least 53 bits. */
  readonly integer: string;
  /** What stands after the closing parenthesis of a table. */
  readonly tableEnd: string;
}

export const SQLITE_WORDS: SqlWords = { text: 'text', integer: 'integer', tableEnd: 'strict' };
export const POSTGRES_WORDS: SqlWords = { text: 'text collate "C"', integer: 'bigint', tableEnd: '' };

/**
 * Statements that lead from the schema before to this one, and back. A migration only adds (expand): columns are nullable
 * or have defaults, so that programs of `compatibleFrom` and later go on working while replicas are replaced. What nobody
 * reads any more is dropped a release later (contract), with a higher `compatibleFrom`.
 */
export interface Migration {
  readonly name: string;
  /** Number of the oldest schema whose programs work with this one. */
  readonly compatibleFrom: number;
  readonly up: (words: SqlWords) => readonly string[];
  readonly down: (words: SqlWords) => readonly string[];
}
