import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { DecisionLog } from './decision-log.ts';
import type { Decided } from './reach.ts';
import { readDecisions } from './read-decisions.ts';

const asked = (host: string): Decided => ({
  decision: 'denied',
  host,
  port: 443,
  via: 'proxy',
  reason: 'no',
});

function openLog() {
  const clock = manualClock();
  const lines: string[] = [];
  const log = new DecisionLog((line) => void lines.push(line), clock);
  const counts = () => lines.map((line) => (JSON.parse(line) as { count: number }).count);
  return { clock, lines, log, counts };
}

test('what is new is told at once, repeats as a count at most every 5 s', () => {
  const { clock, lines, log, counts } = openLog();
  log.record(asked('a.example'));
  expect(lines).toEqual([
    '{"time":"2026-01-01T00:00:00.000Z","decision":"denied","host":"a.example","port":443,"via":"proxy","reason":"no","count":1}\n',
  ]);
  clock.pass(1_000);
  for (let times = 0; times < 50; times += 1) log.record(asked('a.example'));
  expect(counts()).toEqual([1]);
  clock.pass(5_000);
  expect(counts()).toEqual([1, 51]);
  clock.pass(60_000);
  expect(counts()).toEqual([1, 51]);
});

test('the older an entry, the rarer it is told: fewer than 40 lines in a year of steady repeats', () => {
  const { clock, log, counts } = openLog();
  for (let hour = 0; hour < 365 * 24; hour += 1) {
    log.record(asked('a.example'));
    clock.pass(3_600_000);
  }
  expect(counts().length).toBeLessThan(40);
  log.record(asked('a.example'));
  log.flush();
  expect(counts().at(-1)).toBe(365 * 24 + 1);
});

test('endless names end up as one entry for all others, and hide no other kind of decision', () => {
  const { lines, log } = openLog();
  for (let name = 0; name < 100_000; name += 1) log.record(asked(`${name}.example`));
  log.record({ decision: 'allowed', host: 'b.example', port: 443, via: 'proxy' });
  log.flush();
  expect(lines.length).toBeLessThan(150);
  expect(readDecisions(lines.join(''))).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ decision: 'denied', host: '*', count: 100_000 - 120 }),
      expect.objectContaining({ decision: 'allowed', host: 'b.example', count: 1 }),
    ]),
  );
});

test('what is read is what was recorded, whatever was recorded and whenever', () => {
  const steps = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.nat(20_000)), { maxLength: 60 });
  fc.assert(
    fc.property(steps, (all) => {
      const { clock, lines, log } = openLog();
      for (const [host, wait] of all) {
        log.record(asked(host));
        clock.pass(wait);
      }
      log.flush();
      const counts = Object.fromEntries(
        readDecisions(lines.join('')).map(({ host, count }) => [host, count]),
      );
      const expected = Object.groupBy(all, ([host]) => host);
      expect(counts).toEqual(
        Object.fromEntries(Object.entries(expected).map(([host, one]) => [host, one?.length])),
      );
    }),
  );
});
