import type { Stats } from 'node:fs';

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

/**
 * What a file of compiled code begins with, as JSON on a line that ends where words of 8 bytes begin; the code follows, that
 * of each chunk behind the other.
 */
interface Kept {
  /** In how many runs it was written down. */
  readonly runs: number;
  /** See `sampled`. */
  readonly sum: number;
  readonly chunks: readonly (readonly [name: string, bytes: number])[];
}

/** The first run of a command may be unlike the others. */
const RUNS = 3;
/** For words that are no command, such as flags. */
const OTHER = 'other';
const NEWLINE = 0x0a;
/** Older than this, what somebody was writing down was left by a process that was killed. */
const LEFT_MS = 60_000;

/** What a chunk is given, as CommonJS has it. */
export const CHUNK_PARAMETERS = ['exports', 'require', 'module', '__filename', '__dirname'];

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
    const script = new Script(`(function(${CHUNK_PARAMETERS.join()}){'use strict';${source}\n})`, {
      filename: file,
      ...(cachedData && { cachedData }),
      importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
    });
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
    try {
      const codes = new Map(before.codes);
      for (const [file, { script }] of loaded) codes.set(path.basename(file), script.createCachedData());
      write(program, place, { runs: Math.min(RUNS, before.runs + 1), codes });
    } catch {
      // Another process is writing, or nothing can be written: that is no reason to fail.
    }
  }

  return { load, keep };
}

interface Before {
  readonly runs: number;
  readonly codes: ReadonlyMap<string, Buffer>;
}

/** Nothing where there is none, or one that was cut off or damaged. */
function readKept(program: NodeJS.Process, place: string | undefined): Before {
  const nothing = { runs: 0, codes: new Map<string, Buffer>() };
  if (place === undefined) return nothing;
  try {
    const bytes = program.getBuiltinModule('node:fs').readFileSync(place);
    const end = bytes.indexOf(NEWLINE);
    const { runs, sum, chunks } = JSON.parse(bytes.toString('utf8', 0, end)) as Kept;
    let at = end + 1;
    if (sampled(bytes.subarray(at)) !== sum) return nothing;
    const codes = new Map(
      chunks.map(([name, length]) => [name, bytes.subarray(at, (at += length))] as const),
    );
    return at === bytes.length ? { runs, codes } : nothing;
  } catch {
    return nothing;
  }
}

function write(program: NodeJS.Process, place: string, { runs, codes }: Before): void {
  const fs = program.getBuiltinModule('node:fs');
  const all = Buffer.concat([...codes.values()]);
  const kept: Kept = {
    runs,
    sum: sampled(all),
    chunks: [...codes].map(([name, code]) => [name, code.length]),
  };
  const text = JSON.stringify(kept);
  const head = Buffer.from(`${text}${' '.repeat(7 - (Buffer.byteLength(text) % 8))}\n`);
  const draft = `${place}.draft`;
  const left = fs.statSync(draft, { throwIfNoEntry: false });
  if (left !== undefined && Date.now() - left.mtimeMs > LEFT_MS) fs.rmSync(draft);
  const file = fs.openSync(draft, 'wx', 0o600);
  try {
    try {
      const written = fs.writevSync(file, [head, all]);
      if (written !== head.length + all.length) throw new Error('the disk is full');
    } finally {
      fs.closeSync(file);
    }
    fs.renameSync(draft, place);
  } catch (error) {
    fs.rmSync(draft);
    throw error;
  }
}

/**
 * A sum over four bytes of each 128: V8 crashes on code that is damaged, as by a power cut, and damage comes in blocks of a
 * disk. To look at all bytes takes 3 ms, and so does a sum of Node's, which has to be loaded first. `write` does not wait
 * until the disk has it, because the supervisor would serve nobody meanwhile.
 */
function sampled(bytes: Buffer): number {
  const words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length >>> 2);
  let sum = bytes.length;
  for (let at = 0; at < words.length; at += 32) sum = (Math.imul(sum, 31) + (words[at] ?? 0)) | 0;
  return sum;
}

/**
 * Where what is compiled of a build for a command is kept; undefined where nothing can be. V8 takes what was compiled by the
 * same V8 with the same flags alone.
 */
function placeFor(program: NodeJS.Process, build: string, command: string): string | undefined {
  const fs = program.getBuiltinModule('node:fs');
  const path = program.getBuiltinModule('node:path');
  const { XDG_CACHE_HOME: cache = '', HOME: home = '' } = program.env;
  // As in core/files/places.ts.
  const base = path.isAbsolute(cache) ? cache : path.join(home, '.cache');
  if (!path.isAbsolute(base) || program.getuid === undefined) return undefined;
  const uid = program.getuid();
  const isOurs = (found: Stats, others = 0o022): boolean =>
    found.isDirectory() && found.uid === uid && (found.mode & others) === 0;
  try {
    const skep = path.join(base, 'skep');
    const directory = path.join(skep, 'compiled');
    const own = path.join(directory, `${program.version}-${program.arch}-${build}`);
    fs.mkdirSync(directory, { recursive: true, mode: 0o700 });
    // Whoever could rename what is above could exchange it; a group of the user's own may often write in a home.
    const above = isOurs(fs.statSync(base), 0o002) && isOurs(fs.statSync(skep));
    if (!above || !isOurs(fs.lstatSync(directory))) return undefined;
    fs.mkdirSync(own, { recursive: true, mode: 0o700 });
    if (!isOurs(fs.lstatSync(own))) return undefined;
    return path.join(own, /^[a-z][a-z-]{0,30}$/u.test(command) ? command : OTHER);
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
