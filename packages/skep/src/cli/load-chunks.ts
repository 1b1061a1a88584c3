/** The chunks of the packed program. */
export interface Chunks {
  /** What a chunk exports; its path is absolute. Fails as `readFileSync`, and with what the chunk throws. */
  readonly load: (file: string) => unknown;
  /** Writes down what has been compiled so far, where that helps the next run. Never fails. */
  readonly keep: () => void;
}

interface Loaded {
  readonly module: { exports: unknown };
  readonly script: { readonly createCachedData: () => Buffer };
}

/** What a file of compiled code begins with, as JSON on one line; the code follows, that of each chunk behind the other. */
interface Kept {
  /** In how many runs it was written down. */
  readonly runs: number;
  readonly chunks: readonly (readonly [name: string, bytes: number])[];
}

/** The first run of a command may be unlike the others. */
const RUNS = 3;
/** What an older build has kept goes when a new one is there for the first time, unless that was used of late. */
const OLD_MS = 30 * 86_400_000;
const NEWLINE = 0x0a;

/**
 * Loads the packed program, which is CommonJS, with what V8 compiled of it when the same command ran before (decision 0466):
 * functions that were called too, which Node's own compile cache lacks, because that is taken before anything is called.
 * What is kept runs in our name, so it lies in a directory of this user that nobody else can write to; where there is none
 * the program starts all the same. `first` is the path of its first chunk, whose name tells one build from another. Imports
 * nothing, because what is imported is compiled anew each time.
 */
export function openChunks(program: NodeJS.Process, first: string, command = ''): Chunks {
  const fs = program.getBuiltinModule('node:fs');
  const path = program.getBuiltinModule('node:path');
  const { Script, constants } = program.getBuiltinModule('node:vm');
  const place = placeFor(program, path.basename(first, '.js'), command);
  const before = readKept(program, place);
  const loaded = new Map<string, Loaded>();
  let isToKeep = before.runs < RUNS;

  function load(file: string): unknown {
    const there = loaded.get(file);
    if (there !== undefined) return there.module.exports;
    const cachedData = before.codes.get(path.basename(file));
    const source = fs.readFileSync(file, 'utf8');
    const script = new Script(
      `(function(exports,require,module,__filename,__dirname){'use strict';${source}\n})`,
      {
        filename: file,
        ...(cachedData && { cachedData }),
        importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
      },
    );
    if (cachedData === undefined || script.cachedDataRejected === true) isToKeep = true;
    const module = { exports: {} };
    const folder = path.dirname(file);
    const require = (id: string): unknown =>
      id.startsWith('.') ? load(path.join(folder, id)) : builtin(program, id);
    loaded.set(file, { module, script });
    try {
      script.runInThisContext().call(undefined, module.exports, require, module, file, folder);
    } catch (error) {
      loaded.delete(file);
      throw error;
    }
    return module.exports;
  }

  function keep(): void {
    if (place === undefined || !isToKeep) return;
    isToKeep = false;
    const codes = [...loaded].map(([file, { script }]) => ({
      name: path.basename(file),
      code: script.createCachedData(),
    }));
    const kept: Kept = {
      runs: Math.min(RUNS, before.runs + 1),
      chunks: codes.map(({ name, code }) => [name, code.length]),
    };
    const draft = `${place}.${program.pid}`;
    try {
      const file = fs.openSync(draft, 'w', 0o600);
      try {
        fs.writevSync(file, [Buffer.from(`${JSON.stringify(kept)}\n`), ...codes.map(({ code }) => code)]);
        // V8 does not notice what a power cut leaves of it.
        fs.fsyncSync(file);
      } finally {
        fs.closeSync(file);
      }
      fs.renameSync(draft, place);
    } catch {
      // A disk that is full is no reason to fail.
      fs.rmSync(draft, { force: true });
    }
  }

  return { load, keep };
}

interface Before {
  readonly runs: number;
  readonly codes: ReadonlyMap<string, Buffer>;
}

/** Nothing where there is none, or one that was cut off. */
function readKept(program: NodeJS.Process, place: string | undefined): Before {
  const nothing = { runs: 0, codes: new Map<string, Buffer>() };
  if (place === undefined) return nothing;
  try {
    const bytes = program.getBuiltinModule('node:fs').readFileSync(place);
    const end = bytes.indexOf(NEWLINE);
    const { runs, chunks } = JSON.parse(bytes.toString('utf8', 0, end)) as Kept;
    let at = end + 1;
    const codes = new Map(
      chunks.map(([name, length]) => [name, bytes.subarray(at, (at += length))] as const),
    );
    return at === bytes.length ? { runs, codes } : nothing;
  } catch {
    return nothing;
  }
}

/**
 * Where what is compiled of a build for a command is kept; undefined where nothing can be, or the word is of no command.
 * V8 takes what was compiled by the same V8 with the same flags alone.
 */
function placeFor(program: NodeJS.Process, build: string, command: string): string | undefined {
  const fs = program.getBuiltinModule('node:fs');
  const path = program.getBuiltinModule('node:path');
  const { XDG_CACHE_HOME: cache = '', HOME: home = '' } = program.env;
  // As in core/files/places.ts.
  const base = path.isAbsolute(cache) ? cache : path.join(home, '.cache');
  if (!path.isAbsolute(base) || program.getuid === undefined || !/^[a-z][a-z-]{0,30}$/u.test(command))
    return undefined;
  try {
    const directory = path.join(base, 'skep', 'compiled');
    fs.mkdirSync(directory, { recursive: true, mode: 0o700 });
    const { uid, mode } = fs.statSync(directory);
    if (uid !== program.getuid() || (mode & 0o022) !== 0) return undefined;
    const own = path.join(directory, `${program.version}-${build}`);
    if (!fs.existsSync(own)) {
      fs.mkdirSync(own, { mode: 0o700 });
      for (const name of fs.readdirSync(directory)) {
        const other = path.join(directory, name);
        if (Date.now() - fs.statSync(other).mtimeMs > OLD_MS)
          fs.rmSync(other, { recursive: true, force: true });
      }
    }
    return path.join(own, command);
  } catch {
    // A home that cannot be written is no reason not to start.
    return undefined;
  }
}

function builtin(program: NodeJS.Process, id: string): unknown {
  const found = program.getBuiltinModule(id);
  if (found === undefined) throw new Error(`the program has no module "${id}"`);
  return found;
}
