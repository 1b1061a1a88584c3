import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import type { Program } from '@skep/core/command/command.ts';
import type { Host } from '@skep/core/command/host.ts';
import { REGISTRY } from '../packages/registry/src/commands/program.ts';
import { SKEP } from '../packages/skep/src/commands.ts';

const root = path.resolve(import.meta.dirname, '..');
const read = (page: string): string => readFileSync(path.join(root, page), 'utf8');
const PAGES = ['README.md', 'packages/skep/README.md', 'packages/registry/README.md'];

/** What may stand after the name of a program. */
function wordsOf<H extends Host>(program: Program<H>): readonly string[] {
  return program.commands.flatMap(({ name, ...more }) => [
    name,
    ...('aliases' in more ? (more.aliases ?? []) : []),
  ]);
}

test.each(['README.md', 'CONTRIBUTING.md', 'SECURITY.md'])('the links of %s lead somewhere', (page) => {
  const links = [...read(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, to = '']) => to);
  const inside = links.filter((to) => !/^(?:https:|#)/.test(to)).map((to) => to.replace(/#.*/, ''));
  expect(inside.filter((to) => !existsSync(path.join(root, to)))).toEqual([]);
});

test.each(PAGES)('the commands that %s shows exist', (page) => {
  const shown = [...read(page).matchAll(/(?:^|`|\$ )(skep|skep-registry) ([a-z][a-z-]*)/gm)];
  expect(shown.length).toBeGreaterThan(1);
  const known = new Map([
    ['skep', wordsOf(SKEP)],
    ['skep-registry', wordsOf(REGISTRY)],
  ]);
  const unknown = shown.filter(([, program = '', word = '']) => known.get(program)?.includes(word) !== true);
  expect(unknown.map(([text]) => text)).toEqual([]);
});
