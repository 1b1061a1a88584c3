import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hasCode } from '../errors/skep-error.ts';
import { formatDuration } from '../time/duration.ts';
import { defineSettings, valuesOf } from './define-settings.ts';
import { fromArgv } from './from-argv.ts';
import { mergeSettings } from './merge.ts';

const rows = defineSettings([
  { name: 'help', kind: 'bool', flag: 'help', short: 'h', group: 'General', brief: 'help' },
  { name: 'name', kind: 'string', flag: 'name', group: 'General', brief: 'name' },
  { name: 'env', kind: 'pairs', flag: 'env', short: 'e', group: 'General', brief: 'variables' },
  { name: 'label', kind: 'list', flag: 'label', short: 'l', group: 'General', brief: 'labels' },
  { name: 'tools', kind: 'strings', flag: 'tools', group: 'General', brief: 'tools' },
  {
    name: 'isolate',
    kind: 'bool',
    flag: 'isolate-network',
    group: 'General',
    brief: 'isolate',
    default: false,
  },
  { name: 'ignore', kind: 'bool', flag: 'ignore-globally', group: 'General', brief: 'ignore', default: true },
  { name: 'foreground', kind: 'bool', flag: 'foreground', short: 'f', group: 'General', brief: 'block' },
  { name: 'timeout', kind: 'duration', flag: 'remote-auth-timeout', group: 'General', brief: 't', min: 0 },
  {
    name: 'port',
    kind: 'int',
    flag: 'proxy-port',
    short: 'p',
    group: 'General',
    brief: 'port',
    min: 0,
    max: 65_535,
  },
  { name: 'rate', kind: 'float', flag: 'rate', group: 'General', brief: 'rate', min: 0, max: 1 },
  {
    name: 'mode',
    kind: 'choice',
    flag: 'mode',
    group: 'General',
    brief: 'mode',
    choices: ['stdio', 'sse'],
    notYetValues: ['sse'],
  },
  { name: 'old', kind: 'bool', flag: 'old', group: 'General', brief: 'old', deprecated: 'use --mode' },
  { name: 'later', kind: 'string', flag: 'later', group: 'General', brief: 'later', notYet: true },
  { name: 'pin', kind: 'int', flag: 'pin', group: 'General', brief: 'pin', secret: true },
  { name: 'file', kind: 'path', flag: 'file', group: 'General', brief: 'file', excludes: ['name'] },
]);
const shape = { rows, positionals: [{ name: 'SERVER' }], rest: true };
const read = (...argv: string[]) => fromArgv(shape, argv);
const values = (...argv: string[]) => valuesOf(rows, mergeSettings(rows, [read(...argv).settings]));

test('reads the torture line', () => {
  const line =
    '-e A=1 -eB=2 --env=C=x=y --tools a,b --tools c --isolate-network srv --ignore-globally=false --remote-auth-timeout 2m30s -f -- --x -y z';
  const found = read(...line.split(' '));
  expect(found.positionals).toEqual(['srv']);
  expect(found.rest).toEqual(['--x', '-y', 'z']);
  expect(values(...line.split(' '))).toMatchObject({
    env: { A: '1', B: '2', C: 'x=y' },
    tools: ['a', 'b', 'c'],
    isolate: true,
    ignore: false,
    timeout: 150_000,
    foreground: true,
  });
});

describe('notation', () => {
  test.each([
    [['-e=A=1'], { env: { A: '1' } }],
    [['-fe', 'A=1'], { foreground: true, env: { A: '1' } }],
    [['-e', '-x=1'], { env: { '-x': '1' } }],
    [['--env', 'A='], { env: { A: '' } }],
    [['--env', '__proto__=1'], { env: Object.fromEntries([['__proto__', '1']]) }],
    [['--name', 'a', '--name', 'b'], { name: 'b' }],
    [['--foreground', '--foreground=false'], { foreground: false }],
    [['--foreground=false', '-f'], { foreground: true }],
    [['--label', 'a,b', '-l', 'c'], { label: ['a,b', 'c'] }],
    [['--rate', '.5'], { rate: 0.5 }],
    [['--name=--foreground'], { name: '--foreground' }],
  ])('%j', (argv, expected) => {
    expect(values(...argv)).toMatchObject(expected);
  });

  test('a flag before the server does not eat it', () => {
    expect(read('-f', 'srv').positionals).toEqual(['srv']);
  });

  test.each([[[]], [['--']]])('%j has nothing to pass on', (argv) => {
    expect(read(...argv).rest).toBeUndefined();
  });

  test('the first -- counts, later ones are passed on', () => {
    expect(read('srv', '--', 'a', '--', 'b').rest).toEqual(['a', '--', 'b']);
  });

  test('without rest, -- only ends the flags', () => {
    const found = fromArgv({ rows, positionals: [{ name: 'NAME', variadic: true }] }, ['a', '--', '-b']);
    expect(found.positionals).toEqual(['a', '-b']);
  });
});

describe('refusals', () => {
  test.each([
    [['--fore-ground'], 'usage/unknown-flag', 'unknown flag "--fore-ground"'],
    [['--no-foreground'], 'usage/unknown-flag', 'unknown flag "--no-foreground"'],
    [['-z'], 'usage/unknown-flag', 'unknown flag "-z"'],
    [['--__proto__=1'], 'usage/unknown-flag', 'unknown flag "--__proto__"'],
    [['--f'], 'usage/unknown-flag', 'unknown flag "--f"'],
    [['a', 'b'], 'usage/unexpected-argument', 'unexpected argument "b"'],
    [['--name'], 'usage/missing-argument', 'the flag "--name" needs a value'],
    [['--name', '--', 'x'], 'usage/missing-argument', 'the flag "--name" needs a value'],
    [['--later', 'x'], 'usage/not-available', 'the flag "--later" is not available yet'],
    [['--mode', 'sse'], 'usage/not-available', 'the value "sse" of --mode is not available yet'],
    [['--mode', 'x'], 'usage/invalid-value', 'invalid value "x" for --mode: it must be one of stdio, sse'],
    [['-p', '70000'], 'usage/invalid-value', 'invalid value "70000" for -p: it must be between 0 and 65535'],
    [
      ['--proxy-port=1.5'],
      'usage/invalid-value',
      'invalid value "1.5" for --proxy-port: it must be a whole number',
    ],
    [
      ['--proxy-port='],
      'usage/invalid-value',
      'invalid value "" for --proxy-port: it must be a whole number',
    ],
    [
      ['--foreground=maybe'],
      'usage/invalid-value',
      'invalid value "maybe" for --foreground: it must be true or false',
    ],
    [['-e', 'A'], 'usage/invalid-value', 'invalid value "A" for -e: it must have the form KEY=VALUE'],
    [['-e', '=A'], 'usage/invalid-value', 'invalid value "=A" for -e: the key before = is empty'],
    [['--pin', 'hunter2'], 'usage/invalid-value', 'invalid value for --pin: it must be a whole number'],
    [['--name=a\0b'], 'usage/invalid-value', 'invalid value "a\0b" for --name: it holds a NUL character'],
    [['--name', 'a', '--file', 'b'], 'usage/conflict', '--file cannot be used together with --name'],
    [
      ['--remote-auth-timeout', '-1s'],
      'usage/invalid-value',
      'invalid value "-1s" for --remote-auth-timeout: it must be at least 0s',
    ],
  ])('%j', (argv, code, message) => {
    expect(() => read(...argv)).toThrow(expect.objectContaining({ code, message }));
  });

  test('suggest the flag that was meant', () => {
    expect(() => read('--fore-ground')).toThrow(
      expect.objectContaining({ hint: 'did you mean "--foreground"?' }),
    );
  });

  test('name a missing positional', () => {
    expect(() => fromArgv({ rows, positionals: [{ name: 'NAME', required: true }] }, [])).toThrow(
      'missing argument NAME',
    );
  });
});

test('help wins over everything that is wrong with the line', () => {
  expect(read('--nope', '-h', '--later', 'x').help).toBe(true);
  expect(read('srv', '--', '-h').help).toBe(false);
});

test('a deprecated flag still works and warns once', () => {
  expect(read('--old', '--old').warnings).toEqual(['--old is deprecated: use --mode']);
});

// What a value may look like on a command line: anything but NUL.
const word = fc.string().map((text) => text.replaceAll('\0', ''));
const key = fc.string({ minLength: 1 }).map((text) => text.replace(/[\0=]/gu, 'k'));

test('any values given as flags come back as they were', () => {
  const given = fc.record(
    {
      name: word,
      env: fc.dictionary(key, word),
      label: fc.array(word, { minLength: 1 }),
      ignore: fc.boolean(),
      port: fc.integer({ min: 0, max: 65_535 }),
      timeout: fc.nat(),
      mode: fc.constant('stdio'),
    },
    { requiredKeys: ['ignore'] },
  );
  fc.assert(
    fc.property(given, fc.array(word), ({ env, ...rest }, passedOn) => {
      const argv = [
        ...Object.entries(env ?? {}).flatMap(([key, value]) => ['-e', `${key}=${value}`]),
        ...(rest.label ?? []).map((label) => `--label=${label}`),
        ...(rest.name === undefined ? [] : [`--name=${rest.name}`]),
        ...(rest.port === undefined ? [] : ['-p', String(rest.port)]),
        ...(rest.timeout === undefined ? [] : ['--remote-auth-timeout', formatDuration(rest.timeout)]),
        ...(rest.mode === undefined ? [] : ['--mode', rest.mode]),
        `--ignore-globally=${rest.ignore}`,
        '--',
        ...passedOn,
      ];
      // the first -- ends the flags wherever it stands
      fc.pre(argv.indexOf('--') === argv.length - passedOn.length - 1);
      const expected = env === undefined || Object.keys(env).length === 0 ? rest : { ...rest, env };
      const { isolate: _isolate, ...found } = values(...argv);
      expect(Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined))).toEqual(
        Object.fromEntries(Object.entries(expected).filter(([, value]) => value !== undefined)),
      );
      expect(read(...argv).rest ?? []).toEqual(passedOn);
    }),
  );
});

test('any line is read or refused as a usage error, never otherwise', () => {
  const token = fc.oneof(
    word,
    fc.constantFrom('--name', '-e', '-f', '--', '-', '--env=', '-fe', '--mode', '-=', '--=', '--proxy-port'),
  );
  fc.assert(
    fc.property(fc.array(token, { maxLength: 8 }), (argv) => {
      try {
        read(...argv);
      } catch (error) {
        const usage = (
          [
            'unknown-flag',
            'invalid-value',
            'missing-argument',
            'unexpected-argument',
            'conflict',
            'not-available',
          ] as const
        ).some((code) => hasCode(error, `usage/${code}`));
        expect(usage, String(error)).toBe(true);
      }
    }),
  );
});
