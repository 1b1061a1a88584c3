import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hasCode } from '../errors/skep-error.ts';
import { fileRows as rows } from './file-rows.fixture.ts';
import { fromFile } from './from-file.ts';

async function read(text: string, format: 'yaml' | 'json' = 'yaml'): Promise<Record<string, unknown>> {
  const settings = await fromFile(rows, { path: 'c', text, format });
  return Object.fromEntries([...settings].map(([name, { value }]) => [name, value]));
}

test('reads every kind, nested keys too', async () => {
  const text = `
host: yes            # YAML 1.2: text, not true
port: 4001
timeout: 2m30s
debug: true
mode: a
otel: { rate: 0.5, tools: "x, y" }
volumes: [/a:/b, /c]
env_vars: { A: "1", __proto__: p }
`;
  expect(await read(text)).toEqual({
    host: 'yes',
    port: 4001,
    timeout: 150_000,
    debug: true,
    mode: 'a',
    rate: 0.5,
    tools: ['x', 'y'],
    volumes: ['/a:/b', '/c'],
    env: Object.fromEntries([
      ['A', '1'],
      ['__proto__', 'p'],
    ]),
  });
});

test.each(['', '# nothing here\n', '{}'])('%j sets nothing', async (text) => {
  expect(await read(text)).toEqual({});
});

test('lines that need no parser mean what they mean to it', async () => {
  const outcome = (text: string) =>
    read(text).catch((error: unknown) => (hasCode(error, 'config/invalid') ? 'no' : error));
  const line = fc.tuple(
    fc.constantFrom('host', 'debug', 'mode', 'rate', 'otel', 'port', 'absent', '# x', ' host'),
    fc.constantFrom(': ', ':', ' : ', ':  '),
    fc.constantFrom(
      'true',
      'false',
      'yes',
      '/a/b.json',
      'https://a.example/b',
      '/a: b',
      '/a #b',
      '1',
      "'/a'",
      '',
    ),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(line, { maxLength: 4 }), async (lines) => {
      const text = lines.map((parts) => parts.join('')).join('\n');
      expect(await outcome(text)).toEqual(await outcome(`# é\n${text}`));
    }),
  );
});

test('reads JSON with tabs and escapes', async () => {
  expect(await read('{\n\t"host": "a\\/\\u0041",\n\t"port": 1\n}', 'json')).toEqual({ host: 'a/A', port: 1 });
});

test('an alias stands for its value', async () => {
  expect(await read('host: &h x\nvolumes: [*h, *h]')).toEqual({ host: 'x', volumes: ['x', 'x'] });
});

describe('problems are named with their place', () => {
  test.each([
    ['host: a\nprot: 1', 'c:2:1: unknown key "prot"'],
    ['otel:\n  rats: 1', 'c:2:3: unknown key "otel.rats"'],
    ['otel: 1', 'c:1:1: key "otel" must be a mapping'],
    ['host:', 'c:1:6: key "host" has no value: it must be text'],
    ['port: "4001"', 'c:1:7: invalid value "4001" for key "port": it must be a whole number'],
    ['port: 1.5', 'c:1:7: invalid value "1.5" for key "port": it must be a whole number'],
    ['port: 70000', 'c:1:7: invalid value "70000" for key "port": it must be between 0 and 65535'],
    ['host: 5', 'c:1:7: invalid value "5" for key "host": it must be text'],
    ['mode: c', 'c:1:7: invalid value "c" for key "mode": it must be one of a, b'],
    [
      'timeout: 30',
      'c:1:10: invalid value "30" for key "timeout": it must be a duration such as 30s or 2m30s',
    ],
    [
      'env_vars: { A: 1 }',
      'c:1:11: invalid value "{"A":1}" for key "env_vars": it must be a mapping of names to texts; put numbers in quotes',
    ],
    ['token: hunter2', 'c:1:8: invalid value for key "token": it must be a whole number'],
    ['host: a\nhost: b', 'c:2:1: Map keys must be unique'],
    ['host: !!js/function x', 'c:1:7: Unresolved tag: tag:yaml.org,2002:js/function'],
    ['- a', 'c:1:1: it must be a mapping of keys to values'],
    ['? [a]\n: b', 'c:1:3: keys must be text'],
    ['<<: {host: a}', 'c:1:1: unknown key "<<"'],
  ])('%j', async (text, message) => {
    await expect(read(text)).rejects.toMatchObject({ code: 'config/invalid', message });
  });

  test('broken JSON too', async () => {
    await expect(read('{"host": }', 'json')).rejects.toMatchObject({ message: 'c:1:10: not valid JSON' });
  });

  test('a duplicate key of a JSON file too', async () => {
    await expect(read('{"host": "a",\n "host": "b"}', 'json')).rejects.toThrow(
      'c:2:2: Map keys must be unique',
    );
  });

  test('all at once', async () => {
    await expect(read('prot: 1\nport: x')).rejects.toMatchObject({
      message:
        'c:1:1: unknown key "prot"; c:2:7: invalid value "x" for key "port": it must be a whole number',
      hint: 'did you mean "port"?',
    });
  });

  test.each(['later: x', 'mode: b'])('"%s" is not available yet', async (text) => {
    await expect(read(text)).rejects.toMatchObject({ code: 'usage/not-available' });
  });

  test('an alias bomb is refused', async () => {
    const levels = Array.from({ length: 9 }, (_, i) => `  - &l${i + 1} [${`*l${i},`.repeat(9)}]`);
    await expect(read(`volumes:\n  - &l0 [x]\n${levels.join('\n')}`)).rejects.toThrow(
      'c:1:1: too many aliases',
    );
  });
});

test('any text is read or refused as a configuration error, never otherwise', async () => {
  const snippets = fc.constantFrom(
    'host',
    'otel',
    ':',
    ' ',
    '\n',
    '- ',
    '&a',
    '*a',
    '{',
    '}',
    '!!x',
    '"',
    '|',
    '1',
  );
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(
        fc.string(),
        fc.array(snippets).map((parts) => parts.join('')),
      ),
      async (text) => {
        try {
          await read(text);
        } catch (error) {
          expect(
            hasCode(error, 'config/invalid') || hasCode(error, 'usage/not-available'),
            String(error),
          ).toBe(true);
        }
      },
    ),
  );
});
