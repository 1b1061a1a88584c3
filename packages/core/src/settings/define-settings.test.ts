import { expect, expectTypeOf, test } from 'vitest';
import { defineSettings, flag, settingsOf, valuesOf } from './define-settings.ts';
import { didYouMean } from './did-you-mean.ts';
import type { Settings } from './field.ts';
import { fromEnv } from './from-env.ts';
import { mergeSettings } from './merge.ts';

const field = { group: 'General', brief: 'x' } as const;

test('values are typed by their rows', () => {
  const rows = defineSettings([
    { ...field, name: 'port', kind: 'int' },
    { ...field, name: 'host', kind: 'string', default: '127.0.0.1' },
    { ...field, name: 'mode', kind: 'choice', choices: ['a', 'b'] },
    { ...field, name: 'env', kind: 'pairs', default: {} },
  ]);
  const values = valuesOf(rows, new Map());
  expectTypeOf(values.port).toEqualTypeOf<number | undefined>();
  expectTypeOf(values.host).toEqualTypeOf<string>();
  expectTypeOf(values.mode).toEqualTypeOf<'a' | 'b' | undefined>();
  expectTypeOf(values.env).toEqualTypeOf<Readonly<Record<string, string>>>();
  expect(values).toEqual({ port: undefined, host: '127.0.0.1', mode: undefined, env: {} });
});

test('a row that is delivered in a group that waits says so itself', () => {
  const [waiting, delivered] = settingsOf({ group: 'General', notYet: true }, [
    flag('bool', 'later', 'x'),
    flag('string', 'target-host', 'x', { notYet: false }),
  ]);
  expectTypeOf(waiting.notYet).toEqualTypeOf<true>();
  expectTypeOf(delivered.notYet).toEqualTypeOf<false>();
  expect([waiting, delivered]).toMatchObject([{ notYet: true }, { notYet: false, name: 'targetHost' }]);
});

test.each([
  ['name', { name: 'a', flag: 'y' }],
  ['flag', { name: 'b', flag: 'x' }],
] as const)('two rows cannot claim one %s', (_member, second) => {
  expect(() =>
    defineSettings([
      { ...field, kind: 'bool', name: 'a', flag: 'x' },
      { ...field, kind: 'bool', ...second },
    ]),
  ).toThrow('two settings claim');
});

test('a relation to a row that is none is a defect', () => {
  expect(() => defineSettings([{ ...field, kind: 'bool', name: 'a', needs: ['b'] }])).toThrow(
    'setting "a" names "b"',
  );
});

const rows = defineSettings([
  { ...field, name: 'host', kind: 'string', flag: 'host', env: 'X_HOST', default: 'd' },
  {
    ...field,
    name: 'secret',
    kind: 'string',
    flag: 'secret',
    needs: ['id'],
    excludes: ['file'],
    secret: true,
  },
  { ...field, name: 'file', kind: 'path', flag: 'file' },
  { ...field, name: 'id', kind: 'string', flag: 'id' },
  { ...field, name: 'labels', kind: 'list', flag: 'label', env: 'X_LABELS' },
  { ...field, name: 'debug', kind: 'bool', flag: 'debug', env: 'X_DEBUG' },
  { ...field, name: 'later', kind: 'string', flag: 'later', env: 'X_LATER', notYet: true },
]);
const layer = (origin: 'flag' | 'env' | 'file', members: Record<string, string>): Settings =>
  new Map(Object.entries(members).map(([name, value]) => [name, { value, origin }]));

test.each([
  [['flag', 'env', 'file'], 'flag'],
  [['env', 'file'], 'env'],
  [['file'], 'file'],
  [[], 'default'],
] as const)('of %j, the winner is %s', (origins, winner) => {
  const merged = mergeSettings(
    rows,
    origins.map((origin) => layer(origin, { host: origin })),
  );
  expect(merged.get('host')?.origin).toBe(winner);
});

test('a setting without the one it needs is refused', () => {
  expect(() => mergeSettings(rows, [layer('flag', { secret: 's' })])).toThrow('--secret needs --id');
  expect(() =>
    mergeSettings(rows, [layer('flag', { secret: 's' }), layer('env', { id: 'i' })]),
  ).not.toThrow();
});

test('settings exclude each other in one place, while a stronger place just wins', () => {
  expect(() => mergeSettings(rows, [layer('flag', { secret: 's', id: 'i', file: 'f' })])).toThrow(
    '--secret cannot be used together with --file',
  );
  expect(() =>
    mergeSettings(rows, [layer('flag', { file: 'f' }), layer('env', { secret: 's', id: 'i' })]),
  ).not.toThrow();
});

test('the environment is read by the notation of the kind', () => {
  const env = { X_HOST: 'h', X_LABELS: 'a\nb,c', X_DEBUG: '1', X_LATER: 'ignored' };
  const found = fromEnv(rows, env);
  expect(Object.fromEntries([...found].map(([name, { value }]) => [name, value]))).toEqual({
    host: 'h',
    labels: ['a', 'b,c'],
    debug: true,
  });
});

test('an empty variable counts as unset', () => {
  expect(fromEnv(rows, { X_HOST: '' }).size).toBe(0);
});

test('a bad variable is named', () => {
  expect(() => fromEnv(rows, { X_DEBUG: 'x' })).toThrow(
    'invalid value "x" for the environment variable X_DEBUG: it must be true or false',
  );
});

test('a bad variable of a lenient row is told, and counts as unset', () => {
  const lenient = defineSettings([
    { name: 'wait', kind: 'duration', group: 'G', brief: 'Wait', env: 'X_WAIT', min: 1, lenient: true },
  ]);
  const told: string[] = [];
  const read = (X_WAIT: string) => fromEnv(lenient, { X_WAIT }, (line) => told.push(line)).get('wait')?.value;
  expect([read('soon'), read('0s'), read('2s')]).toEqual([undefined, undefined, 2_000]);
  expect(told).toEqual([
    expect.stringMatching(
      /^invalid value "soon" for the environment variable X_WAIT: .*; it counts as unset$/,
    ),
    expect.stringMatching(/^invalid value "0s" for the environment variable X_WAIT: .*; it counts as unset$/),
  ]);
});

test.each([
  ['proxyport', 'proxy-port'],
  ['porxy-port', 'proxy-port'],
  ['PROXY-PORT', 'proxy-port'],
  ['hots', 'host'],
  ['completely-different', undefined],
  ['', undefined],
  ['x'.repeat(100_000), undefined],
])('for %.20s, %s was meant', (given, expected) => {
  expect(didYouMean(given, ['proxy-port', 'host', 'group'])).toBe(expected);
});
