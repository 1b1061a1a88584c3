import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { readDecisions } from './read-decisions.ts';

const line = (parts: object) =>
  JSON.stringify({
    time: '2026-01-01T00:00:00.000Z',
    decision: 'denied',
    host: 'a.example',
    port: 443,
    via: 'proxy',
    reason: 'no',
    count: 1,
    ...parts,
  });

test('the last count of an entry counts, and those of gateways that followed each other are added up', () => {
  const lines = [
    line({ count: 1 }),
    line({ count: 7, time: '2026-01-01T00:00:05.000Z' }),
    line({ count: 1, time: '2026-01-02T00:00:00.000Z' }),
    line({ count: 3, time: '2026-01-02T00:00:05.000Z' }),
  ];
  expect(readDecisions(lines.join('\n'))).toEqual([
    {
      time: '2026-01-02T00:00:05.000Z',
      decision: 'denied',
      host: 'a.example',
      port: 443,
      via: 'proxy',
      reason: 'no',
      count: 10,
    },
  ]);
});

test('the newest comes last, and a name alone has no port', () => {
  const lines = [
    line({ host: 'late', time: '2026-01-03T00:00:00.000Z', never: true }),
    line({ host: 'early', port: undefined, via: 'dns' }),
  ];
  expect(readDecisions(lines.join('\n'))).toMatchObject([{ host: 'early' }, { host: 'late', never: true }]);
  expect(readDecisions(lines.join('\n'))[0]).not.toHaveProperty('port');
});

test.each([
  ['another text', '{"listening":true}'],
  ['a line that was cut off', line({}).slice(0, 40)],
  ['a decision that is none', line({ decision: 'maybe' })],
  ['a way that is none', line({ via: 'pigeon' })],
  ['a host that is no text', line({ host: 7 })],
  ['a host with an escape', line({ host: 'a\u001b[31m' })],
  ['a host that is too long', line({ host: 'a'.repeat(401) })],
  ['a port that is none', line({ port: 65_536 })],
  ['a count that is none', line({ count: -1 })],
  ['a time that is none', line({ time: 'today' })],
  ['a line that is too long', line({ more: 'x'.repeat(5_000) })],
  ['a list', '[]'],
])('%s is left out', (_what, bad) => {
  expect(readDecisions(`${bad}\n${line({})}`)).toHaveLength(1);
});

test('of endless entries the newest stay', () => {
  const lines = Array.from({ length: 3_000 }, (_, index) => line({ host: `${index}.example` }));
  const read = readDecisions(lines.join('\n'));
  expect(read).toHaveLength(1_500);
  expect(read.at(-1)).toMatchObject({ host: '2999.example' });
});

test('no text fails', () => {
  const json = fc.json({ maxDepth: 3 });
  fc.assert(
    fc.property(fc.array(fc.oneof(json, fc.string(), fc.constant(line({})))), (lines) => {
      for (const { count } of readDecisions(lines.join('\n'))) expect(count).toBeGreaterThan(0);
    }),
  );
});
