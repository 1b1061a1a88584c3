import { describe, expect, test } from 'vitest';
import {
  addressIn,
  overlap,
  parseRange,
  rangeText,
  routesOf,
  subnetCandidates,
  type Range,
} from './subnets.ts';

const range = (text: string): Range => {
  const found = parseRange(text);
  if (!found) throw new TypeError(text);
  return found;
};
const first = (key: string, ...taken: string[]): string => {
  const [subnet] = subnetCandidates(key, taken.map(range)).take(1);
  return subnet === undefined ? 'none' : rangeText(subnet);
};

describe('a subnet for a network', () => {
  test('is small, and another one for another key', () => {
    const found = Array.from({ length: 200 }, (_, index) => first(`key ${index}`));
    expect(new Set(found).size).toBeGreaterThan(190);
    for (const one of found) expect(one).toMatch(/^10\.231\.\d+\.\d+\/29$/);
  });

  test('is the same one for the same key, and then the ones after it', () => {
    const [one, two] = subnetCandidates('key', []).take(2);
    expect(first('key')).toBe(rangeText(one ?? range('0.0.0.0/0')));
    expect((two?.base ?? 0) - (one?.base ?? 0)).toBe(8);
  });

  test('lies in no range that this machine uses', () => {
    const own = first('key');
    expect(first('key', own)).not.toBe(own);
    expect(first('key', '10.231.0.0/16')).toMatch(/^172\.30\./);
    expect(first('key', '10.0.0.0/8', '172.16.0.0/12')).toMatch(/^192\.168\./);
  });

  test('lies in a wide range where all of them are routed, and never in a narrow one', () => {
    const all = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'];
    expect(first('key', ...all)).toBe(first('key'));
    expect(first('key', ...all, '10.231.0.0/17', '10.231.128.0/17')).toMatch(/^172\.30\./);
  });

  test('cannot be found where every address is taken', () => {
    const halves = ['10.231', '172.30', '10.87', '192.168'].flatMap((one) => [
      `${one}.0.0/17`,
      `${one}.128.0/17`,
    ]);
    expect(first('key', ...halves)).toBe('none');
  });
});

test.each([
  ['10.0.0.0/8', '10.231.4.8/29', true],
  ['10.231.4.8/29', '10.231.4.16/29', false],
  ['10.231.4.9/32', '10.231.4.8/29', true],
  ['255.255.255.255/32', '255.255.255.248/29', true],
])('%s and %s have an address in common: %s', (left, right, shared) => {
  expect(overlap(range(left), range(right))).toBe(shared);
  expect(overlap(range(right), range(left))).toBe(shared);
});

test.each(['', '10.0.0.0', '10.0.0.0/33', '10.0.0.256/8', 'fd00::/8', '10.0.0.0/8 '])(
  '"%s" is no range',
  (text) => {
    expect(parseRange(text)).toBeUndefined();
  },
);

test('addresses are counted from the first one of a range', () => {
  expect(addressIn(range('10.231.255.255/29'), 2)).toBe('10.231.255.250');
  expect(rangeText(range('203.0.113.77/24'))).toBe('203.0.113.0/24');
});

test('routes are read as the kernel of Linux writes them, without the default one', () => {
  const table = [
    'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT',
    'eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0',
    'docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0',
    'br-1\t0804E70A\t00000000\t0001\t0\t0\t0\tF8FFFFFF\t0\t0\t0',
    'damaged',
    '',
  ].join('\n');
  expect(routesOf(table).map(rangeText)).toEqual(['172.17.0.0/16', '10.231.4.8/29']);
});
