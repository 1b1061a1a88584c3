import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** Rows that the program writes by itself, whatever it is asked. */
const OWN = new Set(['sync_status', 'sync_lease']);

/** Everything that a store in SQLite holds because somebody asked for it, as text; its revision number included. */
export function storeDump(folder: string, file: string): string {
  const database = new DatabaseSync(path.join(folder, file), { readOnly: true });
  try {
    const tables = database
      .prepare(`select name from sqlite_master where type = 'table' order by name`)
      .all()
      .map(({ name }) => String(name))
      .filter((name) => !OWN.has(name));
    return JSON.stringify(tables.map((name) => [name, database.prepare(`select * from "${name}"`).all()]));
  } finally {
    database.close();
  }
}
