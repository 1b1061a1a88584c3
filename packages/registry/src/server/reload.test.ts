import { afterEach, expect, test } from 'vitest';
import { oauthWith } from '../api/api.fixture.ts';
import { DEFAULT_LIMITS } from '../shape/limits.ts';
import type { AppOptions } from './app-options.ts';
import { appOptions, configWith, inlineSource } from './app.fixture.ts';
import { startApp, type App } from './app.ts';

const OAUTH = oauthWith({ kind: 'auth-only' });

let app: App | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
});

async function started(changes: Partial<AppOptions> = {}): Promise<App> {
  app = await startApp(appOptions(changes));
  return app;
}

const status = async (url: string): Promise<number> => (await fetch(url)).status;

test('a reload takes over sources and registries, and says which other keys need a restart', async () => {
  const registry = await started();
  const next = configWith({
    sources: [inlineSource('other', ['acme/news', 'acme/weather'])],
    registries: [{ name: 'some', sources: ['other'], claims: '' }],
    cors: { allowedOrigins: '*', maxAge: 1 },
    limits: { ...DEFAULT_LIMITS, requestTimeout: 1234, requestRate: { perSecond: 0.001, burst: 2 } },
  });
  expect(await registry.reload(next)).toEqual(['limits.requestTimeout', 'cors']);
  expect(await status(`${registry.urls.public}/registry/all/v0.1/servers`)).toBe(404);
  expect(await status(`${registry.urls.public}/registry/some/v0.1/servers`)).toBe(200);
  // The rate of the new configuration is in force.
  expect(await status(`${registry.urls.public}/registry/some/v0.1/servers`)).toBe(429);
});

test('a reload that the store refuses changes nothing', async () => {
  const registry = await started();
  const unknown = configWith({
    auth: OAUTH,
    registries: [{ name: 'all', sources: ['main', 'absent'], claims: '' }],
  });
  await expect(registry.reload(unknown)).rejects.toMatchObject({ code: 'store/failed' });
  expect(await status(`${registry.urls.public}/registry/all/v0.1/servers`)).toBe(200);
  expect(await registry.reload(configWith())).toEqual([]);
});

test('a reload replaces the sign-in', async () => {
  const registry = await started();
  await registry.reload(configWith({ auth: OAUTH }));
  expect(await status(`${registry.urls.public}/registry/all/v0.1/servers`)).toBe(401);
  await registry.reload(configWith());
  expect(await status(`${registry.urls.public}/registry/all/v0.1/servers`)).toBe(200);
});

test('sign-in does not end where the server listens on every interface and nobody has chosen that', async () => {
  const { addresses } = appOptions();
  const config = configWith({ auth: OAUTH });
  const registry = await started({ config, addresses: { ...addresses, isChosen: false } });
  await expect(registry.reload(configWith())).rejects.toThrow('auth.mode has become anonymous');
  expect(await status(`${registry.urls.public}/registry/all/v0.1/servers`)).toBe(401);
});

test('one reload runs at a time, and none on a server that stops', async () => {
  const registry = await started();
  const [first, second] = await Promise.allSettled([
    registry.reload(configWith()),
    registry.reload(configWith()),
  ]);
  expect([first.status, second.status]).toEqual(['fulfilled', 'rejected']);
  await registry.close();
  await expect(registry.reload(configWith())).rejects.toThrow('not ready');
});
