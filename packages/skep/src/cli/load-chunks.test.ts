import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Script, type ScriptOptions } from 'node:vm';
import * as fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
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
const kept = (command = 'list'): string => path.join(directory(), `${process.version}-first`, command);

class Watched extends Script {
  constructor(code: string, options: ScriptOptions) {
    super(code, options);
    const isTaken = options.cachedData === undefined ? undefined : this.cachedDataRejected === false;
    taken.push([path.basename(options.filename ?? ''), isTaken]);
  }
}

function open(command = 'list', env: NodeJS.ProcessEnv = { HOME: home }, uid = process.getuid?.()): Chunks {
  const vm = { ...process.getBuiltinModule('node:vm'), Script: Watched };
  const program = {
    env,
    pid: process.pid,
    version: process.version,
    getuid: () => uid,
    getBuiltinModule: (id: string) => (id === 'node:vm' ? vm : process.getBuiltinModule(id)),
  };
  return openChunks(program as never, file('first'), command);
}

interface First {
  readonly called: () => number;
}

/** One run of a command. */
function run(command = 'list', env?: NodeJS.ProcessEnv, uid?: number): void {
  const { load, keep } = open(command, env, uid);
  expect((load(file('first')) as First).called()).toBe(3);
  keep();
}

test('what was compiled is kept for the next run of a command, in the cache of the user, for nobody else', () => {
  run();
  run();
  expect(taken).toEqual([['first.js', undefined], ['other.js', undefined], ['first.js', true], ['other.js', true]]); // prettier-ignore
  expect([directory(), path.dirname(kept()), kept()].map((one) => statSync(one).mode & 0o777)).toEqual([
    0o700, 0o700, 0o600,
  ]);
  run('list', { HOME: '/nowhere', XDG_CACHE_HOME: path.join(home, 'own') });
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

test('it is written down in three runs, and in each later one that loads what is not there', () => {
  const drafts = (): readonly string[] => readdirSync(path.dirname(kept())).filter((name) => name !== 'list');
  const isWritten = (): boolean => {
    utimesSync(kept(), 1, 1);
    run();
    return statSync(kept()).mtimeMs > 1_000;
  };
  run();
  expect([isWritten(), isWritten(), isWritten(), isWritten()]).toEqual([true, true, false, false]);
  chunk('other', `const more = require('./more.js'); exports.add = (a, b) => more.sum(a, b);`);
  chunk('more', `exports.sum = (a, b) => a + b;`);
  expect([isWritten(), isWritten()]).toEqual([true, false]);
  expect(drafts()).toEqual([]);
});

test('a directory of another user or one that others can write is not used: its code would run in our name', () => {
  run('list', { HOME: home }, (process.getuid?.() ?? 0) + 1);
  chmodSync(directory(), 0o777);
  run();
  expect(readdirSync(directory())).toEqual([]);
});

test('where nothing can be kept the program runs all the same', () => {
  const plain = path.join(home, 'file');
  writeFileSync(plain, '');
  for (const env of [{}, { HOME: 'relative' }, { HOME: plain }]) run('list', env);
  for (const word of ['', '--help', '../../list', 'LIST', 'x'.repeat(99)]) run(word);
  expect(taken.every(([, isTaken]) => isTaken === undefined)).toBe(true);
  // The directory of a build was removed, or a disk has no room.
  const { load, keep } = open();
  load(file('first'));
  rmSync(path.join(home, '.cache'), { recursive: true });
  keep();
});

test('what was cut off or is something else is written anew', () => {
  run();
  const whole = readFileSync(kept());
  const same = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes));
  const cut = fc.nat(whole.length - 1).map((length) => whole.subarray(0, length));
  const longer = same.filter(({ length }) => length > 0).map((more) => Buffer.concat([whole, more]));
  fc.assert(
    fc.property(fc.oneof(same, cut, longer), (bytes) => {
      writeFileSync(kept(), bytes);
      taken = [];
      run();
      expect(taken).toEqual([['first.js', undefined], ['other.js', undefined]]); // prettier-ignore
      run();
      expect(taken.slice(2)).toEqual([['first.js', true], ['other.js', true]]); // prettier-ignore
    }),
    { numRuns: 50 },
  );
});

test('a chunk whose text has changed is compiled anew', () => {
  run();
  chunk('other', `exports.add = (a, b) => b + a + 0;`);
  run();
  expect(taken.at(-1)).toEqual(['other.js', false]);
  run();
  expect(taken.at(-1)).toEqual(['other.js', true]);
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

test('a new build removes what others have kept that nobody has used of late', () => {
  for (const [name, days] of [
    ['old', 40],
    ['late', 10],
  ] as const) {
    // prettier-ignore
    mkdirSync(path.join(directory(), name), { recursive: true });
    const seconds = Date.now() / 1_000 - days * 86_400;
    utimesSync(path.join(directory(), name), seconds, seconds);
  }
  run();
  expect(readdirSync(directory()).toSorted()).toEqual(['late', `${process.version}-first`].toSorted());
});
