import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { SkepError } from '../errors/skep-error.ts';
import type { Command, Left } from './command.ts';
import type { Host } from './host.ts';
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

test('what a shortcut leaves is handed to its command, and ends with that, whatever comes of it', async () => {
  const events: string[] = [];
  const flags = { interactive: false, liveErr: false, liveOut: false, colorOut: false, colorErr: false };
  const terminal = {
    ...flags,
    width: 80,
    widthOut: Infinity,
    out: () => {},
    err: () => void events.push('told'),
  };
  const host: Host = { terminal, env: {} } as unknown as Host;
  const run = (execute: () => Promise<void>, isLeft: boolean): Promise<number> => {
    const left: Left<Host> = {
      host: { ...host, cwd: '/left' },
      async [Symbol.asyncDispose]() {
        events.push('over');
      },
    };
    const command: Command<Host> = {
      async execute(argv, { cwd }) {
        events.push(`${argv.join()} in ${cwd}`);
        await execute();
      },
    } as Command<Host>;
    const row = {
      name: 'go',
      brief: 'x',
      load: async () => command,
      shortcut: async () => async () => (isLeft ? left : undefined),
    };
    const program = { name: 'x', about: [], closing: [], commands: [row], prefix: 'x ' };
    return runProgram(program, ['go', 'a'], { terminal, env: {}, open: () => host });
  };
  expect(await run(async () => {}, true)).toBe(0);
  expect(await run(() => Promise.reject(new SkepError('usage/conflict')), true)).not.toBe(0);
  expect(events).toEqual(['a in /left', 'over', 'a in /left', 'told', 'over']);
  events.length = 0;
  expect(await run(async () => {}, false)).toBe(0);
  expect(events).toEqual([]);
});
