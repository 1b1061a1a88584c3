import { setImmediate } from 'node:timers/promises';
import { CompiledQuery, type Kysely } from 'kysely';

/** PostgreSQL takes 65,535 parameters and SQLite 32,766; our widest row has 12. */
const ROWS_PER_STATEMENT = 100;

/**
 * Writes any number of rows, all with the same members in the same order. The statement is compiled once and not for each
 * chunk of rows, which takes longer than the database needs for them.
 */
export async function insertRows<Row extends object, Tables>(
  db: Kysely<Tables>,
  rows: readonly Row[],
  statement: (rows: readonly Row[]) => { compile(): CompiledQuery },
): Promise<void> {
  let sql = '';
  let size = 0;
  for (let at = 0; at < rows.length; at += ROWS_PER_STATEMENT) {
    const chunk = rows.slice(at, at + ROWS_PER_STATEMENT);
    if (chunk.length !== size) ({ sql } = statement(chunk).compile());
    size = chunk.length;
    await db.executeQuery(CompiledQuery.raw(sql, chunk.flatMap(Object.values)));
    // SQLite works in this thread: between two statements requests are answered.
    await setImmediate();
  }
}
