import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isIgnored, parseIgnore } from './gitignore.ts';

/** As git decides of a path: it, or a directory above it. */
function hides(text: string, file: string): boolean {
  const patterns = parseIgnore(text);
  const isDirectory = file.endsWith('/');
  const names = file.replace(/\/$/, '').split('/');
  return names.some((_name, at) =>
    isIgnored(patterns, names.slice(0, at + 1), at < names.length - 1 || isDirectory),
  );
}

test.each([
  ['.env', '.env', true],
  ['.env', 'deep/below/.env', true],
  ['.env', '.envrc', false],
  ['*.pem', 'keys/a.pem', true],
  ['/*.pem', 'keys/a.pem', false],
  ['/*.pem', 'a.pem', true],
  ['secrets/', 'secrets', false],
  ['secrets/', 'a/secrets/', true],
  ['secrets/', 'a/secrets/key', true],
  ['a/b', 'x/a/b', false],
  ['a/b', 'a/b', true],
  ['a/*', 'a/b/c', true],
  ['a/*/c', 'a/b/x/c', false],
  ['a/**/c', 'a/c', true],
  ['a/**/c', 'a/b/x/c', true],
  ['**/c', 'a/b/c', true],
  ['a/**', 'a/', false],
  ['a/**', 'a/x', true],
  ['**', 'a/x', true],
  ['*', '.hidden', true],
  ['k?y', 'key', true],
  ['k?y', 'k/y', false],
  ['[a-c].key', 'b.key', true],
  ['[!a-c].key', 'b.key', false],
  ['[^a-c].key', 'd.key', true],
  ['[]-]x', ']x', true],
  ['[]-]x', '-x', true],
  ['[[:digit:]]x', '7x', true],
  ['[[:nothing:]]x', '7x', false],
  ['[abc', '[abc', false],
  ['\\#x', '#x', true],
  ['#x', '#x', false],
  ['\\!x', '!x', true],
  ['x\\ ', 'x ', true],
  ['x  ', 'x', true],
  ['x\\', 'x\\', false],
  ['*.log\n!keep.log', 'keep.log', false],
  ['*.log\n!keep.log', 'a.log', true],
  ['logs/\n!logs/keep', 'logs/keep', true],
  ['\uFEFF.env\r\n', '.env', true],
  ['//', 'a', false],
  ['', 'a', false],
])('%j hides %j: %s', (text, file, expected) => {
  expect(hides(text, file)).toBe(expected);
});

const hasGit = (() => {
  try {
    return execFileSync('git', ['--version']).length > 0;
  } catch {
    return false;
  }
})();

describe.skipIf(!hasGit)('compared with git itself', () => {
  let directory: string;
  beforeAll(() => {
    directory = mkdtempSync(path.join(tmpdir(), 'skep-gitignore-'));
    execFileSync('git', ['init', '-q', directory]);
    mkdirSync(path.join(directory, 'a/b'), { recursive: true });
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  const git = (text: string, files: readonly string[]): string[] => {
    writeFileSync(path.join(directory, '.gitignore'), text);
    const args = ['-c', 'core.excludesFile=/dev/null', '-c', 'core.quotePath=off', '-C', directory];
    try {
      const asked = ['check-ignore', '--no-index', '-z', '--stdin'];
      const out = execFileSync('git', [...args, ...asked], { input: files.join('\0'), stdio: 'pipe' });
      return out
        .toString()
        .split('\0')
        .filter((one) => one !== '');
    } catch (error) {
      if ((error as { status?: number }).status === 1) return [];
      throw error;
    }
  };

  // Empty names, and two asterisks beside something else, which git takes in another way than its own page says.
  const ODD = /\/\/|[^/\n]\*\*|\*\*[^/\n]/;

  test('every pattern means the same', () => {
    const piece = fc.constantFrom('a', 'b', '*', '**', '?', '/', '!', '#', '\\', ' ', '[ab]', '[!a]', '[', ']', '.', '\n', 'a/', '/b', '**/', '/**'); // prettier-ignore
    const text = fc
      .array(piece, { minLength: 1, maxLength: 8 })
      .map((pieces) => pieces.join(''))
      .filter((one) => !ODD.test(one));
    const name = fc.constantFrom('a', 'b', 'ab', 'ba', '.a', 'c', 'a b', '!', '#', ']');
    const files = fc.array(fc.array(name, { minLength: 1, maxLength: 4 }).map((names) => names.join('/')), { minLength: 1, maxLength: 12 }); // prettier-ignore
    fc.assert(
      fc.property(text, files, (pattern, asked) => {
        // git looks at the disk for whether a path is a directory: a and a/b are, nothing else is there.
        const distinct = [...new Set(asked)].filter((one) => one !== 'a' && one !== 'a/b');
        if (distinct.length === 0) return;
        expect(distinct.filter((one) => hides(pattern, one))).toEqual(git(pattern, distinct));
      }),
      { numRuns: 200 },
    );
    // It asks git some hundred times, which takes long where others work.
  }, 120_000);
});

test('no pattern takes longer than its length and that of the path ask for', () => {
  const pattern = `${'*a'.repeat(2000)}b`;
  const hostile = parseIgnore(`${pattern}\n${'**/a/'.repeat(500)}b`);
  expect(isIgnored(hostile, ['a'.repeat(255)], false)).toBe(false);
  expect(
    isIgnored(
      hostile,
      Array.from({ length: 500 }, () => 'a'),
      false,
    ),
  ).toBe(false);
});
