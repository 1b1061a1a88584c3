import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Field } from '@skep/core/settings/field.ts';
import { places } from '@skep/core/files/places.ts';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Context } from '../cli/context.ts';
import { runSettings } from '../settings/run-settings.ts';
import { getsNetwork } from './gets-network.ts';

let home: string;
let context: Context;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'skep-gets-network-'));
  context = {
    places: places({ env: {}, home, platform: 'linux', temp: home }),
  } as unknown as Context;
  await mkdir(dirname(context.places.configFile), { recursive: true });
});
afterEach(() => rm(home, { recursive: true }));

test.each([
  'everything',
  'ghcr.io/a/b:1 --name a --group=b -e TOKEN -v /a:/b --secret x,target=Y --transport stdio',
  'everything -- --network none --from-config x',
])('a network is likely: %s', async (line) => {
  expect(await getsNetwork(line.split(' '), context)).toBe(true);
});

test.each([
  'npx://a',
  'https://a.example/mcp',
  'everything --network none',
  'everything --network=host',
  'everything --permission-profile x.json',
  'everything --isolate-network',
  'everything --runtime sandbox',
  '--from-config x.json',
  'everything --no-such-flag',
  '',
])('one is not, or it cannot be told: %s', async (line) => {
  expect(await getsNetwork(line.split(' ').filter(Boolean), context)).toBe(false);
});

test('only flags that say nothing of networks and runtimes are taken for usual ones', async () => {
  const rows: readonly Field[] = runSettings;
  const asked = rows.map(async ({ flag }) => ({
    flag,
    is: await getsNetwork([`--${flag}`], context),
  }));
  const usual = (await Promise.all(asked)).filter(({ is }) => is).map(({ flag }) => flag);
  expect(new Set(usual)).toEqual(
    new Set([
      'env',
      'env-file',
      'group',
      'label',
      'name',
      'no-check',
      'proxy-mode',
      'proxy-port',
      'publish',
      'secret',
      'target-port',
      'tools',
      'transport',
      'volume',
    ]),
  );
});

test('what somebody else provides to run on is not looked for', async () => {
  const connectRuntime = (): Promise<never> => Promise.reject(new Error('connected'));
  expect(await getsNetwork(['everything'], { ...context, connectRuntime })).toBe(false);
});

test('settings of the person that may isolate servers, or cannot be read, make it unlikely', async () => {
  const { configFile } = context.places;
  await writeFile(configFile, 'front_port: 0\n');
  expect(await getsNetwork(['everything'], context)).toBe(true);
  await writeFile(configFile, 'isolation: on\n');
  expect(await getsNetwork(['everything'], context)).toBe(false);
  await rm(configFile);
  await mkdir(configFile);
  expect(await getsNetwork(['everything'], context)).toBe(false);
});
