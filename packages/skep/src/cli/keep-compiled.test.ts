import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { keepCompiled } from './keep-compiled.ts';

let home: string;
let used: string[];
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'skep-compiled-'));
  used = [];
});
afterEach(() => rmSync(home, { recursive: true }));

function keep(env: NodeJS.ProcessEnv, uid = process.getuid?.() ?? 0): void {
  const module = { enableCompileCache: (directory: string) => used.push(directory) };
  keepCompiled({
    ...process,
    env,
    getuid: () => uid,
    getBuiltinModule: (id: string) => (id === 'node:module' ? module : process.getBuiltinModule(id)),
  } as never);
}

const directory = (): string => join(home, '.cache/skep/compiled');

test('what was compiled is kept in the cache of the user, for nobody else', () => {
  keep({ HOME: home });
  keep({ HOME: '/nowhere', XDG_CACHE_HOME: join(home, 'own') });
  expect(used).toEqual([directory(), join(home, 'own/skep/compiled')]);
  expect(statSync(directory()).mode & 0o777).toBe(0o700);
});

test('a directory of another user or one that others can write is not used: its code would run in our name', () => {
  keep({ HOME: home }, (process.getuid?.() ?? 0) + 1);
  mkdirSync(directory(), { recursive: true });
  chmodSync(directory(), 0o777);
  keep({ HOME: home });
  expect(used).toEqual([]);
});

test('a home that cannot be written is no reason not to start', () => {
  const file = join(home, 'file');
  writeFileSync(file, '');
  for (const env of [{}, { HOME: 'relative' }, { HOME: file }]) keep(env);
  expect(used).toEqual([]);
});
