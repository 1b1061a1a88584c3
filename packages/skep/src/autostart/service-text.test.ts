import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isUnchanged, launchdPlist, systemdUnit } from './service-text.ts';

const HOSTILE = [
  '"',
  "'",
  '\\',
  '%',
  '%%',
  '$',
  '${HOME}',
  ' ',
  '\n',
  '\t',
  '\n[Service]\n',
  '<',
  '&amp;',
  ']]>',
  '-->',
  '#',
  ';',
  'ü',
];
const hostile = fc
  .array(fc.oneof(fc.constantFrom(...HOSTILE), fc.string()), { maxLength: 5 })
  .map((parts) => parts.join(''));
const writable = hostile.filter((text) => !/[\p{Cc}\p{Cs}]/u.test(text.replaceAll(/[\n\t]/g, '')));
const service = fc.record({
  command: fc.array(writable, { minLength: 1, maxLength: 4 }),
  env: fc.dictionary(fc.stringMatching(/^[A-Z_]{1,8}$/), writable, { maxKeys: 3 }),
});

describe('a unit of systemd', () => {
  test('says exactly what it was given, whatever is in it', () => {
    fc.assert(
      fc.property(service, ({ command, env }) => {
        const lines = systemdUnit({ command, env }).split('\n');
        const settings = (key: string): string[] =>
          lines.filter((line) => line.startsWith(`${key}=`)).map((line) => line.slice(key.length + 1));
        expect(settings('Environment').map((line) => words(line)[0])).toEqual(
          Object.entries(env).map(([name, value]) => `${name}=${value}`),
        );
        const [line = '', ...more] = settings('ExecStart');
        expect(more).toEqual([]);
        expect(words(line).map((word) => word.replaceAll('$$', '$'))).toEqual([
          '/bin/sh',
          '-c',
          'exec "$0" "$@"',
          ...command,
        ]);
        expect(lines.filter((one) => one.startsWith('['))).toEqual(['[Unit]', '[Service]', '[Install]']);
      }),
    );
  });

  test.skipIf(!existsSync('/usr/bin/systemd-analyze'))('is one that systemd has nothing to say of', () => {
    const folder = mkdtempSync(join(tmpdir(), 'skep-unit-'));
    try {
      const file = join(folder, 'skep.service');
      const command = ['/opt/a b%h"\'\\ $HOME\n${x}/node', '--', '/home/ü/skep.js', 'supervise'];
      writeFileSync(file, systemdUnit({ command, env: { PATH: `/bin:${HOSTILE.join('')}` } }));
      const env = { PATH: process.env['PATH'], HOME: folder, XDG_RUNTIME_DIR: folder };
      const { status, stderr } = spawnSync('/usr/bin/systemd-analyze', ['--user', 'verify', file], {
        env,
        encoding: 'utf8',
      });
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('a property list of launchd', () => {
  test('says exactly what it was given, whatever is in it', () => {
    fc.assert(
      fc.property(service, ({ command, env }) => {
        const texts = [...launchdPlist({ command, env }).matchAll(/<string>([^<]*)<\/string>/g)].map(
          ([, text = '']) => text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&'),
        );
        expect(texts).toEqual(['dev.skep.supervisor', ...command, ...Object.values(env), '/']);
      }),
    );
  });
});

test.each([systemdUnit, launchdPlist])('%o is known again, until somebody changes it', (write) => {
  fc.assert(
    fc.property(service, fc.nat(), (given, at) => {
      const text = write(given);
      expect(isUnchanged(text)).toBe(true);
      const place = at % text.length;
      expect(isUnchanged(`${text.slice(0, place)}!${text.slice(place)}`)).toBe(
        // What stands around the digest says nothing to systemd or launchd.
        text.slice(0, place).split('\n').length === 2 && !commentHolds(text, place),
      );
    }),
  );
  expect(isUnchanged('')).toBe(false);
});

/** Whether the place is inside of the sentence that holds the digest. */
function commentHolds(text: string, place: number): boolean {
  const start = text.indexOf('Written by');
  const end = text.search(/[0-9a-f]{64}/) + 64;
  return place > start && place < end;
}

test.each(['\0', '\r', '\u001b', '\ud800'])('a path with %j cannot be written down', (character) => {
  const given = { command: [`/opt/${character}/node`], env: {} };
  for (const write of [systemdUnit, launchdPlist])
    expect(() => write(given)).toThrow(expect.objectContaining({ code: 'autostart/unavailable' }));
});

/** The words of a setting as systemd.syntax(7) reads them, `%%` included. */
function words(line: string): string[] {
  const found: string[] = [];
  for (const [word] of line.matchAll(/"(?:[^"\\]|\\.)*"|[^\s"]+/g)) {
    const inner = word.startsWith('"') ? word.slice(1, -1) : word;
    const plain = inner.replaceAll(/\\(.)/g, (_, one: string) => ({ n: '\n', t: '\t' })[one] ?? one);
    found.push(plain.replaceAll('%%', '%'));
  }
  return found;
}
