/**
 * Lets Node keep what it has compiled of this program (node:module, compile cache): the next command starts in half the
 * time. What is kept runs in our name, so it lies in a directory of this user that nobody else can write to; where there
 * is none, the program starts as before. Imports nothing, because what is imported has been compiled by then.
 */
export function keepCompiled({ env, getuid, getBuiltinModule }: NodeJS.Process): void {
  const { mkdirSync, statSync } = getBuiltinModule('node:fs');
  const { isAbsolute, join } = getBuiltinModule('node:path');
  const { XDG_CACHE_HOME: cache = '', HOME: home = '' } = env;
  // As in core/files/places.ts.
  const base = isAbsolute(cache) ? cache : join(home, '.cache');
  if (!isAbsolute(base) || getuid === undefined) return;
  try {
    const directory = join(base, 'skep', 'compiled');
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const { uid, mode } = statSync(directory);
    if (uid === getuid() && (mode & 0o022) === 0)
      getBuiltinModule('node:module').enableCompileCache(directory);
  } catch {
    // A home that cannot be written is no reason not to start.
  }
}
