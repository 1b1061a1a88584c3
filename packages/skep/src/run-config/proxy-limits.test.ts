import type { FieldValue } from '@skep/core/settings/field.ts';
import { fromEnv } from '@skep/core/settings/from-env.ts';
import { mergeSettings } from '@skep/core/settings/merge.ts';
import { proxySettings } from '@skep/proxy/settings.ts';
import { describe, expect, test } from 'vitest';
import { givenLimits, proxyLimits } from './proxy-limits.ts';
import { decodeRunConfig, encodeRunConfig } from './run-config.ts';

const plain = { name: 'ab', image: 'x/y', transport: 'stdio' };

/** What a start reads that a run with this environment saved. */
function saved(env: Readonly<Record<string, string>>) {
  const given = givenLimits(mergeSettings(proxySettings, [fromEnv(proxySettings, env)]));
  return decodeRunConfig(JSON.parse(encodeRunConfig(decodeRunConfig({ ...plain, ...given }, 'f'))), 'f');
}

test.each([
  [undefined, 60_000],
  ['2s', 2_000],
  ['1h30m', 90 * 60_000],
])('a time limit of %s is kept with the workload', (given, used) => {
  const config = saved(given === undefined ? {} : { SKEP_PROXY_REQUEST_TIMEOUT: given });
  expect(proxyLimits(config).requestTimeoutMs).toBe(used);
});

test.each(['2', '0s', '-1s', 'soon', '1000h', 5])('a saved time limit of %j is refused by name', (value) => {
  expect(() => decodeRunConfig({ ...plain, request_timeout: value }, 'f')).toThrow(
    expect.objectContaining({
      code: 'run/invalid-config',
      message: expect.stringContaining('"request_timeout"'),
    }),
  );
});

describe.each(proxySettings.map((row) => [row.name, row] as const))('%s', (name, row) => {
  const texts: Readonly<Record<typeof row.kind, [string, FieldValue]>> = {
    duration: ['3s', 3_000],
    int: ['4096', 4_096],
    bool: ['true', true],
  };
  const [text, value] = texts[row.kind];
  test('is what its variable says, for later starts too', () => {
    expect(proxyLimits(saved({ [row.env]: text }))[name]).toBe(value);
  });
  test('is its default where its variable cannot be read, which is told', () => {
    const told: string[] = [];
    fromEnv(proxySettings, { [row.env]: 'soon' }, (line) => told.push(line));
    expect(told).toEqual([expect.stringContaining(row.env)]);
    expect(proxyLimits(saved({ [row.env]: 'soon' }))[name]).toBe(row.default);
  });
  test('is its default where nothing is given, which no file repeats', () => {
    expect(proxyLimits(saved({}))[name]).toBe(row.default);
    expect(saved({})).not.toHaveProperty(row.key);
  });
});

test('a session lives as long as a file of ToolHive says, by default where that says nothing', () => {
  const ttl = (session_ttl: unknown) =>
    proxyLimits(decodeRunConfig({ ...plain, session_ttl }, 'f')).sessionTtlMs;
  expect(ttl('1h')).toBe(3_600_000);
  expect([ttl(''), ttl(null), ttl(undefined)]).toEqual([7_200_000, 7_200_000, 7_200_000]);
});
