import { expect, test } from 'vitest';
import { silentLog } from '@skep/core/log/log.ts';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { limitedLog } from './limited-log.ts';

const limited = () => {
  const lines: [object, string][] = [];
  const write = (fields: object, message: string): void => void lines.push([fields, message]);
  const clock = manualClock();
  return { lines, clock, log: limitedLog({ ...silentLog, warn: write, error: write }, clock) };
};

test('writes the first ten of a kind in a minute, then how many more there were', () => {
  const { lines, clock, log } = limited();
  for (let n = 0; n < 1_000; n += 1) log.warn({ n }, 'dropped a line');
  log.warn({}, 'something else');
  expect(lines).toHaveLength(11);
  clock.pass(60_000);
  expect(lines.slice(11)).toEqual([
    [{ more: 990, of: 'dropped a line' }, 'more of the same within a minute'],
  ]);
  log.warn({ n: 'later' }, 'dropped a line');
  expect(lines.at(-1)).toEqual([{ n: 'later' }, 'dropped a line']);
});

test('says nothing more about a kind that stayed below the limit', () => {
  const { lines, clock, log } = limited();
  log.error({}, 'once');
  clock.pass(120_000);
  expect(lines).toEqual([[{}, 'once']]);
});

test('writes what it owes when it is closed, once', () => {
  const { lines, clock, log } = limited();
  for (let n = 0; n < 12; n += 1) log.warn({}, 'dropped a line');
  log.close();
  log.close();
  clock.pass(60_000);
  expect(lines.slice(10)).toEqual([[{ more: 2, of: 'dropped a line' }, 'more of the same within a minute']]);
});
