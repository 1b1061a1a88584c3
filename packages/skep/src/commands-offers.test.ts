import { describe, expect, test } from 'vitest';
import { offersFor } from '@skep/core/command/completion.ts';
import type { Program } from '@skep/core/command/command.ts';
import type { Context } from './cli/context.ts';
import { SKEP } from './commands.ts';

const named =
  (...values: string[]) =>
  async () =>
    values.map((value) => ({ value, brief: '' }));
const program: Program<Context> = {
  ...SKEP,
  offers: {
    workload: named('time', 'fetch'),
    server: named('everything', 'io.example/everything', 'x;touch X', '$(touch X)', '`id`', 'a b'),
  },
};
const offered = async (...words: string[]): Promise<readonly string[]> =>
  (await offersFor(words, program, {} as Context)).map(({ value }) => value);

describe('offers', () => {
  test.each([
    [['sta'], ['start', 'status']],
    [['supervi'], []],
    [['reg'], ['registry']],
    [
      ['registry', ''],
      ['list', 'info', 'convert'],
    ],
    [['registry', 'info', 'ev'], ['everything']],
    [
      ['run', ''],
      ['everything', 'io.example/everything'],
    ],
    [['run', 'everything', ''], []],
    [['run', 'everything', '--', '-'], []],
    [['run', '--from-con'], ['--from-config']],
    [
      ['run', '--transport', 's'],
      ['stdio', 'streamable-http', 'sse'],
    ],
    [
      ['run', '--transport=st'],
      ['--transport=stdio', '--transport=streamable-http'],
    ],
    [['run', '--name', ''], []],
    [['run', '--name', 'x', 'io'], ['io.example/everything']],
    [['logs', '-f', 't'], ['time']],
    [
      ['stop', ''],
      ['time', 'fetch'],
    ],
    [['stop', 'time', ''], ['fetch']],
    [['restart', 'f'], ['fetch']],
    [
      ['completion', ''],
      ['bash', 'zsh', 'fish'],
    ],
    [['nonsense', ''], []],
    [['$(touch X)', ''], []],
  ])('for %j are %j', async (words, expected) => {
    expect(await offered(...words)).toEqual(expected);
  });

  test('without a word are the commands', async () => {
    expect(await offered()).toEqual(await offered(''));
    expect(await offered()).toEqual(expect.arrayContaining(['run', 'registry']));
  });

  test('are never something that a shell would take apart or run', async () => {
    for (const words of [
      ['run', ''],
      ['run', '$'],
      ['run', '`'],
      ['run', 'x'],
    ]) {
      for (const value of await offered(...words)) expect(value).toMatch(/^[\w./:=@+-]+$/u);
    }
  });
});
