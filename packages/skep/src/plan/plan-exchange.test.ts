import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fromArgv } from '@skep/core/settings/from-argv.ts';
import { fromEnv } from '@skep/core/settings/from-env.ts';
import { mergeSettings } from '@skep/core/settings/merge.ts';
import { valuesOf } from '@skep/core/settings/define-settings.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { decodeRunConfig } from '../run-config/run-config.ts';
import { runSettings } from '../settings/run-settings.ts';
import { planExchange } from './plan-exchange.ts';

let cwd: string;
beforeAll(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'skep-exchange-'));
  await writeFile(join(cwd, 'secret'), ' of-the-file\n');
});
afterAll(() => rm(cwd, { recursive: true }));

const oidc_config = { issuer: 'https://idp.example', audience: 'x' };
const SIGN_IN = decodeRunConfig({ name: 'a1', image: 'x/y', transport: 'stdio', oidc_config }, 'f');

test.each([
  [
    ['--token-exchange-client-secret', 'of-the-flag'],
    { SKEP_TOKEN_EXCHANGE_CLIENT_SECRET: 'of-the-variable' },
    'of-the-flag',
  ],
  [
    ['--token-exchange-client-secret-file', 'secret'],
    { SKEP_TOKEN_EXCHANGE_CLIENT_SECRET: 'of-the-variable' },
    'of-the-file',
  ],
  [[], { SKEP_TOKEN_EXCHANGE_CLIENT_SECRET: 'of-the-variable' }, 'of-the-variable'],
  [[], {}, undefined],
])('of %j and %j the client secret is %j', async (flags, env, expected) => {
  const argv = [
    '--token-exchange-url',
    'https://idp.example/token',
    '--token-exchange-client-id',
    'c',
    ...flags,
  ];
  const layers = [fromArgv({ rows: runSettings }, argv).settings, fromEnv(runSettings, env)];
  const settings = mergeSettings(runSettings, layers);
  const planned = await planExchange({ values: valuesOf(runSettings, settings), settings }, SIGN_IN, cwd);
  expect(planned.clientSecret).toBe(expected);
});
