import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parseSync, Visitor } from 'oxc-parser';
import type { Program } from '@skep/core/command/command.ts';
import type { Host } from '@skep/core/command/host.ts';
import { CODES } from '@skep/core/errors/codes.ts';
import type { Field } from '@skep/core/settings/field.ts';
import { expect, test } from 'vitest';
import { REGISTRY } from '../packages/registry/src/commands/program.ts';
import { unreadVariables } from '../packages/registry/src/config/overrides.ts';
import { SKEP } from '../packages/skep/src/commands.ts';

const root = path.resolve(import.meta.dirname, '../packages');
const sources = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((file) => /^\w+\/src\/.*\.ts$/.test(file) && !/\.(?:test|fixture)\.ts$/.test(file))
  .map((file) => ({ file, text: readFileSync(path.join(root, file), 'utf8') }));

/** What errors say to people, each with where it is said. */
const said: readonly (readonly [string, string])[] = [
  ...Object.entries(CODES).flatMap(([code, { title, hint }]) => [[code, `${title}; ${hint}`] as const]),
  ...sources.flatMap(({ file, text }) =>
    /\b(?:hint|message):/.test(text) ? messagesOf(file, text).map((one) => [file, one] as const) : [],
  ),
];

/** The texts of all `hint` and `message` members. */
function messagesOf(file: string, text: string): string[] {
  const found: string[] = [];
  new Visitor({
    Property({ key, value }) {
      if (key.type === 'Identifier' && (key.name === 'hint' || key.name === 'message')) {
        found.push(text.slice(value.start, value.end));
      }
    },
  }).visit(parseSync(file, text).program);
  return found;
}

async function rowsOf<H extends Host>(program: Program<H>): Promise<readonly Field[]> {
  const commands = program.commands.flatMap((entry) => ('members' in entry ? entry.members : [entry]));
  const loaded = await Promise.all(commands.map((row) => row.load(program)));
  return loaded.flatMap(({ settings }) => settings);
}

const rows = [...(await rowsOf(SKEP)), ...(await rowsOf(REGISTRY))];

test('every flag that an error names is a flag of some command', () => {
  const flags = new Set(rows.flatMap(({ flag }) => (flag === undefined ? [] : [`--${flag}`])));
  const unknown = said.flatMap(([where, text]) =>
    [...text.matchAll(/(?<![\w-])--[a-z][a-z-]*[a-z]/g)].flatMap(([flag]) =>
      flags.has(flag) ? [] : [`${where}: ${flag}`],
    ),
  );
  expect(unknown).toEqual([]);
});

test('every variable that an error names is read by something', () => {
  const variables = new Set(rows.flatMap(({ env }) => env ?? []));
  const isRead = (name: string): boolean =>
    variables.has(name) ||
    (name.startsWith('SKEP_REGISTRY_') && unreadVariables({ [name]: 'x' }).length === 0) ||
    sources.some(({ text }) => text.includes(`env['${name}']`));
  const unknown = said.flatMap(([where, text]) =>
    [...text.matchAll(/\bSKEP_[A-Z_]*[A-Z]\b/g)].flatMap(([name]) =>
      isRead(name) ? [] : [`${where}: ${name}`],
    ),
  );
  expect(unknown).toEqual([]);
});
