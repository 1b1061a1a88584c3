import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { SkepError } from '../errors/skep-error.ts';
import { runProgram } from './program.ts';

const MESSAGE = 'a server of a rather long name was not found in a catalogue of long names';

/** What is told of a failure on a terminal, or into a file. */
async function told(terminal: { readonly liveErr: boolean; readonly width: number }): Promise<string> {
  let text = '';
  const flags = { interactive: false, liveOut: false, colorOut: false, colorErr: true, widthOut: Infinity };
  const streams = { out: () => {}, err: (part: string) => void (text += part) };
  const program = { name: 'x', about: [], closing: [], commands: [], prefix: 'x ' };
  await runProgram(program, ['y'], {
    terminal: { ...flags, ...streams, ...terminal },
    env: {},
    open: () => {
      throw new SkepError('target/not-found', { message: MESSAGE, hint: 'find names with x search' });
    },
  });
  return stripVTControlCharacters(text);
}

test('an error on a terminal breaks between words, and loses none', async () => {
  const text = await told({ liveErr: true, width: 40 });
  const lines = text.trimEnd().split('\n');
  expect(lines.length).toBeGreaterThan(1);
  for (const line of lines) expect(line.length).toBeLessThanOrEqual(40);
  expect(text.replaceAll('\n', ' ')).toBe(`Error: ${MESSAGE}; find names with x search `);
});

test('an error in a file is one line', async () => {
  const text = await told({ liveErr: false, width: 40 });
  expect(text).toBe(`Error: ${MESSAGE}; find names with x search\n`);
});
