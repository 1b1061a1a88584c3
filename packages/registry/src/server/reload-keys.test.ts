import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadConfig, type RegistryConfig } from '../config/load.ts';
import { DEFAULT_LIMITS, limitsShape } from '../shape/limits.ts';
import { keysForRestart, limitsInForce } from './reload.ts';

describe('what a reload cannot take over', () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'skep-reload-'));
  });
  afterAll(() => rm(directory, { recursive: true }));

  const configWith = async (changes: object): Promise<RegistryConfig> => {
    const text = JSON.stringify({
      sources: [{ name: 'files', file: { path: 'c.json' }, syncPolicy: { interval: '5m' } }],
      registries: [{ name: 'all', sources: ['files'] }],
      auth: { mode: 'anonymous' },
      ...changes,
    });
    await writeFile(join(directory, 'c.yaml'), text);
    const loaded = await loadConfig({
      path: 'c.yaml',
      workingDirectory: directory,
      defaultStorePath: '/x',
      overrides: [],
    });
    if ('problems' in loaded) throw new Error(loaded.problems.join('\n'));
    return loaded.config;
  };
  const database = { host: 'db', port: 5432, database: 'r', user: 'app' };

  test.each<[changes: object, keys: string[]]>([
    [{}, []],
    [
      {
        auth: { mode: 'oauth', oauth: { providers: [{ name: 'a', issuerUrl: 'https://a', audience: 'a' }] } },
      },
      [],
    ],
    [{ audit: { enabled: true } }, []],
    [{ limits: { allowPrivateIP: true, maxInvalidShare: 1, allowedPaths: ['/x'], maxMetaSize: 5 } }, []],
    [{ limits: { maxEntryVersions: 5, maxEntrySize: 2048 } }, []],
    [{ limits: { maxCatalogueSize: 2048, apiSource: { maxPages: 2, maxServers: 3 } } }, []],
    [{ limits: { claims: { maxKeys: 1, maxValues: 2, maxTextSize: 3 } } }, []],
    [{ storage: { path: '/other.db' } }, ['storage']],
    [{ database }, ['storage', 'database']],
    [{ telemetry: { enabled: true, metrics: { enabled: true } } }, ['telemetry']],
    [{ cors: { allowedOrigins: ['*'] } }, ['cors']],
    [{ limits: { requestRate: { perSecond: 1, burst: 1 } } }, []],
    [{ limits: { pageSize: { max: 5 } } }, ['limits.pageSize']],
    [{ limits: { versionsPageSize: { max: 5 } } }, ['limits.versionsPageSize']],
    [{ limits: { bundlePageSize: { max: 5 } } }, ['limits.bundlePageSize']],
    [{ limits: { maxBodySize: 2048 } }, ['limits.maxBodySize']],
    [{ limits: { maxInlineDataSize: 2048 } }, ['limits.maxInlineDataSize']],
    [{ limits: { requestTimeout: '20s' } }, ['limits.requestTimeout']],
  ])('of %j is %j', async (changes, keys) => {
    expect(keysForRestart(await configWith({}), await configWith(changes), true)).toEqual(keys);
  });

  test('is the audit log where nobody watches requests', async () => {
    const next = await configWith({ audit: { enabled: true } });
    expect(keysForRestart(await configWith({}), next, false)).toEqual(['audit']);
    expect(keysForRestart(next, await configWith({}), false)).toEqual([]);
  });
});

test('of new limits those are in force at once that no restart is needed for', () => {
  const next = limitsShape.parse({
    pageSize: { max: 5 },
    maxBodySize: 2048,
    requestTimeout: '20s',
    maxEntryVersions: 7,
    requestRate: { perSecond: 1, burst: 1 },
  });
  const inForce = limitsInForce(DEFAULT_LIMITS, next);
  expect(inForce).toEqual({
    ...DEFAULT_LIMITS,
    maxEntryVersions: 7,
    requestRate: { perSecond: 1, burst: 1 },
  });
  expect(Object.isFrozen(inForce)).toBe(true);
});
