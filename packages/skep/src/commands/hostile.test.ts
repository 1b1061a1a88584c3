import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  controlsIn,
  NOTHING_LEFT,
  openCommandUnderTest,
  type CommandUnderTest,
} from '../command-under-test.fixture.ts';
import type { CommandEntry } from '@skep/core/command/command.ts';
import type { Context } from '../cli/context.ts';
import { COMMANDS } from '../commands.ts';
import { runSettings } from '../settings/run-settings.ts';

let skep: CommandUnderTest;
beforeAll(async () => {
  skep = await openCommandUnderTest({ supervisor: 'asked' });
});
afterAll(() => skep.close());

/** Commands that end by themselves. */
const commands = COMMANDS.flatMap((row: CommandEntry<Context>) =>
  'members' in row ? row.members.map(({ name }) => [row.name, name]) : [[row.name]],
).filter(([name]) => name !== 'supervise');
const flags = runSettings.flatMap((row) => ('flag' in row ? [`--${row.flag}`] : []));

/** What a person mistypes, and what somebody else hands to a script. */
const word = fc.oneof(
  fc.constantFrom(
    '',
    '-',
    '--',
    '=',
    '/',
    '..',
    '~',
    ':',
    '@',
    '\0',
    '\u001B[2J',
    '-1',
    '99999999999',
    '🎈',
    '\u202E',
    '\uFFFF',
  ),
  fc.constantFrom('fake:1', 'a1', 'npx://fake', 'uvx://x@y', 'time', '/dev/null', './x'),
  fc.constantFrom(...flags),
  fc.string({ maxLength: 12, unit: 'binary-ascii' }),
);
/** Nothing may be waited for, nor looked up in the network. */
const allowed = (words: readonly string[]): boolean =>
  !words.some((one) => /^(?:--?f|--host|--learn|-[a-z]*f|https?:)/.test(one)) &&
  !words.includes('set-registry');

async function isOrderly(argv: readonly string[]): Promise<void> {
  const { status, err } = await skep.run(argv);
  expect([0, 1]).toContain(status);
  expect(err).not.toContain('internal error');
  expect(controlsIn(err)).toEqual([]);
  if (status === 0) await skep.output('rm --all');
  expect(await skep.left()).toEqual(NOTHING_LEFT);
}

test('whatever follows any command, it ends in order and a failure leaves nothing', async () => {
  const lines = fc
    .tuple(fc.constantFrom(...commands), fc.array(word, { maxLength: 4 }))
    .map(([command, words]) => [...command, ...words])
    .filter(allowed);
  await fc.assert(fc.asyncProperty(lines, isOrderly), { numRuns: 60 });
});

test('whatever a flag of run is given, the run ends in order and a failure leaves nothing', async () => {
  const given = fc.array(fc.tuple(fc.constantFrom(...flags), word), { minLength: 1, maxLength: 3 });
  const lines = given.map((pairs) => ['run', 'fake:1', ...pairs.flat()]).filter(allowed);
  await fc.assert(fc.asyncProperty(lines, isOrderly), { numRuns: 60 });
});

test('whatever a file of variables, a profile or an exported file holds, the run ends in order', async () => {
  const content = fc.oneof(
    fc.string({ maxLength: 60, unit: 'binary-ascii' }),
    fc.json(),
    fc.constant('{"name":"a1"}'),
  );
  const flag = fc.constantFrom('--env-file', '--permission-profile', '--ca-cert');
  const lines = fc.tuple(
    content,
    fc.oneof(
      flag.map((one) => ['fake:1', one]),
      fc.constant(['--from-config']),
    ),
  );
  await fc.assert(
    fc.asyncProperty(lines, async ([text, words]) => {
      await isOrderly(['run', ...words, await skep.write('hostile.json', text)]);
    }),
    { numRuns: 30 },
  );
});
