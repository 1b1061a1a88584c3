import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Script, type ScriptOptions } from 'node:vm';
import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Chunks, openChunks } from './load-chunks.ts';

let home: string;
/** Of each chunk that was loaded, whether V8 took what was kept of it; undefined where nothing was. */
let taken: (readonly [name: string, taken: boolean | undefined])[];
beforeEach(() => {
  home = mkdtempSync(path.join(tmpdir(), 'skep-chunks-'));
  taken = [];
  chunk('first', `const other = require('./other.js'); exports.called = () => other.add(1, 2);`);
  chunk('other', `exports.add = (a, b) => a + b;`);
});
afterEach(() => rmSync(home, { recursive: true }));

const file = (name: string): string => path.join(home, `${name}.js`);
const chunk = (name: string, code: string): void => writeFileSync(file(name), code);
const directory = (): string => path.join(home, '.cache/skep/compiled');
const build = (): string => path.join(directory(), `${process.version}-${process.arch}-first`);
const kept = (command = 'list'): string => path.join(build(), command);

class Watched extends Script {
  constructor(code: string, options: ScriptOptions) {
    super(code, options);
    const isTaken = options.cachedData === undefined ? undefined : this.cachedDataRejected === false;
    taken.push([path.basename(options.filename ?? ''), isTaken]);
  }
}

interface Around {
  readonly env?: NodeJS.ProcessEnv;
  readonly uid?: number | undefined;
  readonly fs?: object;
}

function open(
  command = 'list',
  { env = { HOME: home }, uid = process.getuid?.(), fs = {} }: Around = {},
): Chunks {
  const modules: Record<string, object> = {
    'node:vm': { ...process.getBuiltinModule('node:vm'), Script: Watched },
    'node:fs': { ...process.getBuiltinModule('node:fs'), ...fs },
  };
  const program = {
    env,
    pid: process.pid,
    version: process.version,
    arch: process.arch,
    getuid: () => uid,
    getBuiltinModule: (id: string) => modules[id] ?? process.getBuiltinModule(id),
  };
  return openChunks(program as never, file('first'), command);
}

interface First {
  readonly called: () => number;
}

/** One run of a command. */
function run(command?: string, around?: Around): void {
  const { load, keep } = open(command, around);
  expect((load(file('first')) as First).called()).toBe(3);
  keep();
}

/** Whether a run has written. */
function writes(action = (): void => run(), command = 'list'): boolean {
  utimesSync(kept(command), 1, 1);
  action();
  return statSync(kept(command)).mtimeMs > 1_000;
}

const anew = [['first.js', undefined], ['other.js', undefined]] as const; // prettier-ignore
const fromKept = [['first.js', true], ['other.js', true]] as const; // prettier-ignore

test('what was compiled is kept for the next run of a command, in the cache of the user, for nobody else', () => {
  run();
  run();
  expect(taken).toEqual([...anew, ...fromKept]);
  const modes = [directory(), build(), kept()].map((one) => statSync(one).mode & 0o777);
  expect(modes).toEqual([0o700, 0o700, 0o600]);
  run('list', { env: { HOME: '/nowhere', XDG_CACHE_HOME: path.join(home, 'own') } });
  expect(readdirSync(path.join(home, 'own/skep/compiled'))).toHaveLength(1);
});

test('functions that were called are kept too, which have not been compiled when a chunk is loaded', () => {
  const sizeAfter = (command: string, calls: number): number => {
    const { load, keep } = open(command);
    const { called } = load(file('first')) as First;
    for (let call = 0; call < calls; call += 1) called();
    keep();
    return statSync(kept(command)).size;
  };
  // In this order, because V8 knows a script again by its text.
  const loaded = sizeAfter('loaded', 0);
  expect(sizeAfter('called', 1)).toBeGreaterThan(loaded);
});

test('it is written down in three runs, once in each, and in a later one that loads what is not there', () => {
  run();
  expect([writes(), writes(), writes(), writes()]).toEqual([true, true, false, false]);
  chunk('other', `const more = require('./more.js'); exports.add = (a, b) => more.sum(a, b);`);
  chunk('more', `exports.sum = (a, b) => a + b;`);
  expect([writes(), writes()]).toEqual([true, false]);
  expect(readdirSync(build())).toEqual(['list']);
  rmSync(kept());
  const { load, keep } = open();
  load(file('first'));
  keep();
  expect(writes(keep)).toBe(false);
});

test('uses of one command that load different chunks leave each other theirs', () => {
  chunk('more', `exports.sum = (a, b) => a + b;`);
  const less = (): void => run();
  const more = (): void => {
    const { load, keep } = open();
    load(file('more'));
    keep();
  };
  for (const use of [less, more, less]) use();
  expect([writes(more), writes(less), writes(more)]).toEqual([false, false, false]);
});

test('a directory of another user, one that others can write, or a link is not used: its code would run in our name', () => {
  run('list', { uid: (process.getuid?.() ?? 0) + 1 });
  chmodSync(directory(), 0o777);
  run();
  expect(readdirSync(directory())).toEqual([]);
  chmodSync(directory(), 0o700);
  for (const above of [path.join(home, '.cache'), path.join(home, '.cache/skep')]) {
    chmodSync(above, 0o777);
    run();
    chmodSync(above, 0o700);
  }
  expect(readdirSync(directory())).toEqual([]);
  const elsewhere = path.join(home, 'elsewhere');
  mkdirSync(elsewhere);
  symlinkSync(elsewhere, build());
  run();
  rmSync(directory(), { recursive: true });
  symlinkSync(elsewhere, directory());
  run();
  expect(readdirSync(elsewhere)).toEqual([]);
});

test('what is no command has one place, inside the directory', () => {
  for (const word of ['', '--help', '../../list', 'LIST', 'x'.repeat(99)]) run(word);
  expect(readdirSync(build())).toEqual(['other']);
  expect(taken.slice(-2)).toEqual(fromKept);
});

describe('where nothing can be kept the program runs all the same', () => {
  const plain = (): string => path.join(home, 'file');
  beforeEach(() => writeFileSync(plain(), ''));

  test.each<[string, () => Around]>([
    ['no home', () => ({ env: {} })],
    ['a relative home', () => ({ env: { HOME: path.relative(process.cwd(), home) } })],
    ['a home that is a file', () => ({ env: { HOME: plain() } })],
  ])('%s', (_, around) => {
    run('list', around());
    run('list', around());
    expect(taken).toEqual([...anew, ...anew]);
  });

  test('a file in the place of the directory', () => {
    mkdirSync(directory(), { recursive: true, mode: 0o700 });
    writeFileSync(build(), '');
    run();
    expect(readFileSync(build(), 'utf8')).toBe('');
  });

  test.each<[string, object]>([
    ['a disk that takes a part', { writevSync: () => 1 }],
    ['a disk that fails', { writevSync: () => fail('EIO') }],
    ['a directory that fails', { renameSync: () => fail('EACCES') }],
  ])('%s, and what there was stays', (_, fs) => {
    run();
    const before = readFileSync(kept());
    run('list', { fs });
    expect(readdirSync(build())).toEqual(['list']);
    expect(readFileSync(kept())).toEqual(before);
  });

  test('a directory that was removed meanwhile', () => {
    const { load, keep } = open();
    load(file('first'));
    rmSync(directory(), { recursive: true });
    keep();
    expect(existsSync(directory())).toBe(false);
  });

  test('another process that is writing, unless it was killed', () => {
    run();
    writeFileSync(kept('list.draft'), 'half');
    expect(writes()).toBe(false);
    utimesSync(kept('list.draft'), 1, 1);
    expect(writes()).toBe(true);
    expect(readdirSync(build())).toEqual(['list']);
  });
});

function fail(code: string): never {
  throw Object.assign(new Error(code), { code });
}

test('what was cut off, damaged or is something else is written anew: V8 would crash on it', () => {
  run();
  const whole = readFileSync(kept());
  const begin = whole.indexOf('\n') + 1;
  const bytes = (lengths: { minLength?: number; maxLength: number }): fc.Arbitrary<Buffer> =>
    fc.uint8Array(lengths).map((one) => Buffer.from(one));
  const block = fc
    .tuple(fc.integer({ min: begin, max: whole.length - 512 }), bytes({ minLength: 512, maxLength: 512 }))
    .map(([at, other]) => Buffer.concat([whole.subarray(0, at), other, whole.subarray(at + 512)]));
  const different = fc.oneof(
    bytes({ maxLength: 300 }),
    fc.nat(whole.length - 1).map((length) => whole.subarray(0, length)),
    bytes({ minLength: 1, maxLength: 300 }).map((more) => Buffer.concat([whole, more])),
    block,
  );
  fc.assert(
    fc.property(different, (text) => {
      writeFileSync(kept(), text);
      taken = [];
      run();
      run();
      expect(taken).toEqual([...anew, ...fromKept]);
    }),
    { numRuns: 100 },
  );
});

test('a chunk whose text has changed is compiled anew, and written down', () => {
  for (const _ of [1, 2, 3]) run();
  chunk('other', `exports.add = (a, b) => b + a + 0;`);
  expect([writes(), taken.at(-1)]).toEqual([true, ['other.js', false]]);
  expect([writes(), taken.at(-1)]).toEqual([false, ['other.js', true]]);
});

test('a chunk is loaded once, strict, and one that fails is tried again', () => {
  chunk('first', `globalThis.loads = (globalThis.loads ?? 0) + 1; if (globalThis.loads === 1) throw new Error('busy');
    exports.isStrict = (function () { return this === undefined; })(); exports.name = require('node:path').basename(__filename); exports.folder = __dirname;`); // prettier-ignore
  const { load } = open();
  try {
    expect(() => load(file('first'))).toThrow('busy');
    const exports = load(file('first'));
    expect(exports).toEqual({ isStrict: true, name: 'first.js', folder: home });
    expect(load(file('first'))).toBe(exports);
    expect(Reflect.get(globalThis, 'loads')).toBe(2);
  } finally {
    Reflect.deleteProperty(globalThis, 'loads');
  }
});

test('what neither the program nor Node has is named', () => {
  chunk('first', `require('left-pad');`);
  expect(() => open().load(file('first'))).toThrow('the program has no module "left-pad"');
});
