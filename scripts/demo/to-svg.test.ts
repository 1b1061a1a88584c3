import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { toSvg } from './to-svg.ts';

const OPTIONS = { columns: 20, title: 'A <title>' };

test('text stays text, where it stood and as it looked', () => {
  const svg = toSvg('  \u001B[1m\u001B[36m1\u001B[0m  plain & <b>\n\n\u001B[32m✓\u001B[39m done', OPTIONS);
  expect(svg).toContain('<title>A &lt;title&gt;</title>');
  expect(svg.match(/<text .*<\/text>/g)).toEqual([
    '<text x="36.8" y="60.25" class="bold cyan">1</text>',
    '<text x="62.0" y="60.25">plain &amp; &lt;b&gt;</text>',
    '<text x="20.0" y="98.25" class="green">✓</text>',
    '<text x="36.8" y="98.25">done</text>',
  ]);
});

test('a code that is not known changes nothing, and what ends bold ends dim', () => {
  const svg = toSvg('\u001B[1;99ma\u001B[22mb\u001B[2mc\u001B[md', OPTIONS);
  expect(
    [...svg.matchAll(/<text[^>]*?(?:class="([^"]*)")?>(\w)</g)].map(([, look, text]) => [text, look]),
  ).toEqual([
    ['a', 'bold'],
    ['b', undefined],
    ['c', 'dim'],
    ['d', undefined],
  ]);
});

test('the picture of the README shows every chapter that the demo has', () => {
  const root = path.resolve(import.meta.dirname, '../..');
  const demo = readFileSync(path.join(import.meta.dirname, 'main.ts'), 'utf8');
  const picture = readFileSync(path.join(root, 'docs/demo.svg'), 'utf8').replaceAll('&quot;', '"');
  const chapters = [...demo.matchAll(/screen\.chapter\(['"`]([^'`$"]+)/g)].map(([, title = '']) =>
    title.trim(),
  );
  expect(chapters.length).toBeGreaterThan(4);
  // Run "npm run picture" where one is missing.
  expect(chapters.filter((title) => !picture.includes(title))).toEqual([]);
});
