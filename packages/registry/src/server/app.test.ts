import { createServer } from 'node:http';
import { once } from 'node:events';
import { afterEach, expect, test, vi } from 'vitest';
import { OPEN_SIGN_IN, SignInSlot } from '../api/sign-in/sign-in.ts';
import { ReadEngine } from '../engine/read-engine.ts';
import { apiContext } from './listeners.ts';
import { startApp, type App } from './app.ts';
import { appOptions, configWith, inlineSource } from './app.fixture.ts';

let app: App | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
});

const names = async (url: string): Promise<string[]> => {
  const page = (await (await fetch(`${url}/registry/all/v0.1/servers`)).json()) as {
    servers: { server: { name: string } }[];
  };
  return page.servers.map(({ server }) => server.name);
};

test('a started registry serves its sources, and tells that it is ready', async () => {
  app = await startApp(appOptions());
  expect(await names(app.urls.public)).toEqual(['acme/weather']);
  const readiness = await fetch(`${app.urls.internal}/readiness`);
  expect([readiness.status, await readiness.json()]).toEqual([200, { status: 'ready' }]);
  expect((await fetch(`${app.urls.internal}/metrics`)).status).toBe(404);
  expect((await fetch(`${app.urls.public}/readiness`)).status).toBe(404);
});

test('before everything is loaded it is not ready, and what needs the store fails', async () => {
  const options = appOptions();
  const { config, clock } = options;
  const running = {
    config,
    limits: config.limits,
    engine: new ReadEngine([]),
    signIn: new SignInSlot(OPEN_SIGN_IN, clock),
    isReady: false,
  };
  const { ready, admin, metrics } = apiContext(options, running);
  await expect(ready()).rejects.toMatchObject({ code: 'registry/not-ready' });
  expect(admin).toThrow('service not ready');
  await expect(metrics()).rejects.toMatchObject({ code: 'registry/no-such-route' });
});

/** The one of the test itself is among them. */
const listening = (): number =>
  process.getActiveResourcesInfo().filter((kind) => kind === 'TCPServerWrap').length;

test('a start that fails leaves nothing that listens', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const address = taken.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const options = appOptions();
  for (const side of ['public', 'internal'] as const) {
    const addresses = { ...options.addresses, [side]: { host: '127.0.0.1', port } };
    await expect(startApp({ ...options, addresses })).rejects.toThrow(
      `cannot listen on "127.0.0.1:${port}": it is in use`,
    );
  }
  const broken = { ...inlineSource('main', []), config: JSON.stringify({ data: 'no catalogue' }) };
  const config = configWith({ sources: [broken] });
  await expect(startApp({ ...options, config })).rejects.toThrow('main');
  await vi.waitFor(() => expect(listening()).toBe(1));
  taken.close();
});

test('a start that is stopped while sources load fails with the reason of the signal', async () => {
  const stop = new AbortController();
  const begun = Promise.withResolvers<void>();
  const options = appOptions({
    stop: stop.signal,
    ingest: (_input, signal) => {
      begun.resolve();
      return new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      });
    },
  });
  const starting = startApp(options);
  await begun.promise;
  stop.abort();
  await expect(starting).rejects.toBe(stop.signal.reason);
});

test('closing again waits for the same end, and frees the ports', async () => {
  const started = await startApp(appOptions());
  await Promise.all([started.close(), started.close()]);
  await expect(fetch(`${started.urls.public}/openapi.json`)).rejects.toThrow();
});
