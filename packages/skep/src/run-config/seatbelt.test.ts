import path from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeRunConfig } from './run-config.ts';
import { toSeatbelt } from './seatbelt.ts';

const minimal = {
  name: 'notes',
  image: 'npm-notes@1.0.0-0123456789ab',
  transport: 'stdio',
  port: 18_080,
  host: '127.0.0.1',
};
const exported = (more: object) => toSeatbelt(decodeRunConfig({ ...minimal, ...more }, 'f'));

const NONE = { permission_profile: { network: { mode: 'none' } } };
const MOUNTED = {
  permission_profile: {
    read: ['/Users/ann/notes', '/tmp/shared:/data'],
    write: ['/Users/ann/"out"'],
    network: { outbound: { allow_host: ['api.example.com'], allow_port: [443] } },
  },
  isolate_network: true,
};
const OPEN = {
  permission_profile: { network: { outbound: { insecure_allow_all: true } } },
  transport: 'streamable-http',
  target_port: 3000,
};

describe('a workload as a Seatbelt profile', () => {
  test.each([
    ['none', NONE],
    ['gateway', MOUNTED],
    ['all', OPEN],
  ])('is as it was looked through, with network %s', async (name, more) => {
    await expect(exported(more).text).toMatchFileSnapshot(
      path.join(import.meta.dirname, `golden/${name}.sb`),
    );
  });

  test('denies what it does not name, and has no network where nothing is allowed', () => {
    for (const more of [NONE, { ...MOUNTED, permission_profile: {} }]) {
      const { text } = exported(more);
      expect(text).toContain('(version 1)\n(deny default)\n');
      expect(text).not.toMatch(/network|mach-lookup/);
    }
    expect(exported(MOUNTED).text.match(/\(allow network.*/g)).toEqual([
      '(allow network-outbound (remote ip (string-append "localhost:" (param "GATEWAY_PORT"))))',
    ]);
  });

  test('writes its state and writable mounts alone', () => {
    const [, writable = ''] = /\(allow file-read\* file-write\*\n {2}\(subpath \(param "STATE"\)\)([^]*?)\)\n\(/.exec(exported(MOUNTED).text) ?? []; // prettier-ignore
    expect(writable.trim()).toBe(String.raw`(subpath "/Users/ann/\"out\"")`);
    expect(exported(NONE).text.match(/file-write\*/g)).toHaveLength(2);
  });

  test('says that nobody tried it, and what it does not hold', () => {
    expect(exported(MOUNTED).notes).toEqual([
      expect.stringContaining('was not tried on macOS'),
      expect.stringContaining('not hidden'),
      '"/tmp/shared" is at its own path there, not at "/data".',
      expect.stringContaining('GATEWAY_PORT'),
    ]);
  });

  test('has no path for a volume that servers share, and says where that goes', () => {
    const shared = exported({ ...MOUNTED, permission_profile: { write: ['volume://ours:/theirs'] } });
    expect(shared.text).not.toMatch(/ours|theirs/);
    expect(shared.notes).toContain('What it keeps goes below STATE; tell it where that is.');
  });

  test('has no rule that a path could make up', () => {
    const shape = (text: string): string =>
      text.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""').replaceAll(/^;.*$/gm, '');
    const mounted = (source: string) => exported({ permission_profile: { read: [`/x/${source}`] } }).text;
    const expected = shape(mounted('plain'));
    const odd = fc.array(fc.constantFrom('"', '\\', '(', ')', '#', '[', ' ', "'", 'a'));
    fc.assert(
      fc.property(odd, (parts) => {
        expect(shape(mounted(`x${parts.join('')}x`))).toBe(expected);
      }),
    );
  });

  test('refuses a path with control characters', () => {
    expect(() => exported({ permission_profile: { read: ['/x/a\tb:/x'] } })).toThrow(
      expect.objectContaining({ code: 'run/invalid-config' }),
    );
  });
});
