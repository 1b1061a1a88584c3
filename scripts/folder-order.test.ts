import { expect, test } from 'vitest';
import { checkFolders, isForTests, type FolderRules } from './folder-order.ts';

const order = {
  '.': 'it is the entry',
  api: 'it speaks HTTP',
  engine: 'it serves reads',
  store: 'it holds rows',
};
const allowed: Readonly<Record<string, readonly string[]>> = {
  'main.ts': ['api/routes.ts'],
  'api/routes.ts': ['engine/page.ts', 'store/rows.ts'],
  'engine/page.ts': ['store/rows.ts'],
  'store/rows.ts': [],
};

test('imports from a folder to one listed after it are fine, and the longest chain is told', () => {
  expect(check(allowed, { order, chain: { to: 'store', ceiling: 4 } })).toEqual({
    problems: [],
    chain: ['.', 'api', 'engine', 'store'],
  });
});

test('an import of a folder listed before says why it is forbidden', () => {
  expect(check({ ...allowed, 'store/rows.ts': ['api/routes.ts'] }).problems[0]).toBe(
    'store must not import api (it speaks HTTP): store/rows.ts imports api/routes.ts',
  );
});

test('a folder without a place and a place without a folder are found', () => {
  expect(check({ 'main.ts': [], 'utils/any.ts': [] }, { order: { '.': '', api: '' } }).problems).toEqual([
    'the folder utils has no place in the order of layers.json',
    'layers.json lists the folder api, which holds no product file',
  ]);
});

test('files that import each other are found, over any number of files', () => {
  const circle = {
    ...allowed,
    'store/a.ts': ['store/b.ts'],
    'store/b.ts': ['store/rows.ts', 'store/c.ts'],
    'store/c.ts': ['store/a.ts'],
  };
  expect(check(circle).problems).toEqual([
    'these files import each other in a circle: store/a.ts, store/b.ts, store/c.ts',
  ]);
});

test('folders under one folder do not import each other', () => {
  const rooms = {
    ...allowed,
    'store/sqlite/open.ts': ['store/postgres/pool.ts'],
    'store/postgres/pool.ts': [],
    'store/postgres/batch.ts': ['store/sqlite/deep/type.ts', 'store/rows.ts'],
    'store/sqlite/deep/type.ts': [],
  };
  expect(check(rooms).problems).toEqual(['store/postgres and store/sqlite import each other']);
});

test('a chain longer than its ceiling is told whole', () => {
  expect(check(allowed, { order, chain: { to: 'store', ceiling: 3 } }).problems).toEqual([
    '4 folders to store, at most 3: . → api → engine → store',
  ]);
});

test('tests, fixtures, contracts and doubles are not product files', () => {
  const files = ['a/x.test.ts', 'a/x.fixture.ts', 'a/contract/x.ts', 'a/contract.ts', 'a/doubles/x.ts'];
  expect(files.map(isForTests)).toEqual([true, true, true, true, true]);
  expect(['a/x.ts', 'a/contracts.ts'].map(isForTests)).toEqual([false, false]);
});

function check(
  imports: Readonly<Record<string, readonly string[]>>,
  rules: FolderRules = { order },
): ReturnType<typeof checkFolders> {
  return checkFolders(new Map(Object.entries(imports)), rules);
}
