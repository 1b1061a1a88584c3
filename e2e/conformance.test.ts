import { describe, expect, test } from 'vitest';
import { SETTINGS } from '@skep/proxy/doubles/running-proxy.ts';
import type { Backend } from '@skep/proxy/backend/backend.ts';
import { startProxy } from '@skep/proxy/start.ts';
import { runConformance } from './conformance/run.ts';
import { conformanceCommand, conformanceOverHttp, spawnedBackend } from './fixtures/spawned-server.ts';

const proxyFor = (backend: Backend) => startProxy({ ...SETTINGS, backend });

const SCENARIOS = 30;

describe('the official conformance suite', () => {
  test('passes against the fixture through a stdio proxy as it does against the fixture itself', async () => {
    using direct = await conformanceOverHttp();
    using piped = spawnedBackend(conformanceCommand('stdio'));
    const proxy = await proxyFor(piped.backend);
    try {
      const through = await runConformance(proxy.url);
      const without = await runConformance(direct.url);
      expect(Object.fromEntries(through)).toEqual(Object.fromEntries(without));
      expect(through.size).toBe(SCENARIOS);
      expect([...through].filter(([, { failed }]) => failed > 0)).toEqual([]);
    } finally {
      await proxy.close();
    }
  });

  test('passes through the forwarding proxy in front of the same fixture over HTTP', async () => {
    using direct = await conformanceOverHttp();
    const proxy = await proxyFor({ kind: 'http', target: new URL(new URL(direct.url).origin) });
    try {
      const through = await runConformance(proxy.url);
      expect(through.size).toBe(SCENARIOS);
      expect([...through].filter(([, { failed }]) => failed > 0)).toEqual([]);
    } finally {
      await proxy.close();
    }
  });
});
