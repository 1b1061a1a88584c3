import { describe, expect, test } from 'vitest';
import { DEFAULT_LIMITS, exceededText, limitsOf, limitTexts, moreThanDefault, parseLimit } from './limits.ts';

test.each([
  ['memory', '512m', 512 * 1024 ** 2],
  ['memory', '1.5g', 1.5 * 1024 ** 3],
  ['memory', '8388608', 8 * 1024 ** 2],
  ['memory', '64MiB', 64 * 1024 ** 2],
  ['memory', '64mb', 64 * 1024 ** 2],
  ['memory', 'none', 0],
  ['memory', '0', 0],
  ['memory', '-1', 0],
  ['cpus', '0.5', 0.5],
  ['cpus', '2', 2],
  ['pids', '100', 100],
  ['disk', '10g', 10 * 1024 ** 3],
] as const)('%s %s is read as container engines do', (which, text, value) => {
  expect(parseLimit(which, text)).toBe(value);
});

test.each([
  ['memory', '', 'amount of memory'],
  ['memory', '5m', 'amount of memory'],
  ['memory', '-5', 'amount of memory'],
  ['memory', '1x', 'amount of memory'],
  ['memory', '1 g', 'amount of memory'],
  ['memory', '9999999999t', 'amount of memory'],
  ['memory', 'Infinity', 'amount of memory'],
  ['cpus', '0.001', 'number of processors'],
  ['cpus', 'two', 'number of processors'],
  ['cpus', '1e3', 'number of processors'],
  ['pids', '15', 'number of processes'],
  ['pids', '20.5', 'number of processes'],
  ['pids', '9999999', 'number of processes'],
  ['disk', '1k', 'amount of disk'],
] as const)('%s %j is refused in one line', (which, text, what) => {
  expect(() => parseLimit(which, text)).toThrow(
    expect.objectContaining({
      code: 'usage/invalid-value',
      message: `${JSON.stringify(text)} is no ${what}`,
      hint: expect.stringMatching(/^give /),
    }),
  );
});

describe('a workload', () => {
  test('is limited where nothing was said, and each limit can be lifted', () => {
    expect(limitsOf({})).toEqual(DEFAULT_LIMITS);
    expect(limitTexts(limitsOf({}))).toEqual(['2 GiB of memory', '512 processes', '4 GiB of disk']);
    const lifted = limitsOf({ memory: 'none', pids_limit: 'none', disk: 'none', cpus: '1.5' });
    expect(limitTexts(lifted)).toEqual(['1.5 processors']);
  });

  test('asks for consent to more than the defaults, and to nothing for less', () => {
    expect(moreThanDefault({ memory: '1g', pids_limit: '100', disk: '1g', cpus: '1' })).toEqual([]);
    expect(moreThanDefault({ memory: '8g', pids_limit: 'none', disk: '5g' })).toEqual([
      'use up to 8 GiB of memory',
      'use processes without a limit',
      'use up to 5 GiB of disk',
    ]);
  });

  test('that was ended is told which limit it met, and with which flag to raise it', () => {
    expect(exceededText('memory', limitsOf({ memory: '64m' }))).toBe(
      'the server was ended because it used more than 64 MiB of memory (--memory)',
    );
    expect(exceededText('disk')).toContain('its limit of disk (--disk)');
  });

  test('is told that what others wrote into a volume counts, where it may write there', () => {
    const volumes = ['notes', 'seen'].map((volume) => ({ volume, target: '/', readOnly: volume === 'seen' }));
    expect(exceededText('disk', limitsOf({}), volumes)).toBe(
      'the server was ended because it used more than 4 GiB of disk (--disk), counting what lies in shared volumes: notes',
    );
    expect(exceededText('memory', limitsOf({}), volumes)).not.toContain('notes');
  });
});
