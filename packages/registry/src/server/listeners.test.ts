import { once } from 'node:events';
import { connect, type AddressInfo } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { OPEN_SIGN_IN, SignInSlot } from '../api/sign-in/sign-in.ts';
import { ReadEngine } from '../engine/read-engine.ts';
import { openStore } from '../store/open-store.ts';
import { apiContext, publicListener } from './listeners.ts';
import { appOptions } from './app.fixture.ts';

test('the public listener asks the store whether it works on a commit, while a change is under way', async () => {
  const options = appOptions();
  const { config, clock } = options;
  const committingSince = vi.fn(() => undefined);
  const store = { ...(await openStore(options.storePlace, options)), committingSince };
  onTestFinished(() => store.close());
  const running = {
    config,
    limits: config.limits,
    engine: new ReadEngine(config.registries),
    signIn: new SignInSlot(OPEN_SIGN_IN, clock),
    isReady: true,
    store,
  };
  const unwatched = { observers: [], tracing: undefined };
  const server = publicListener(options, running, apiContext(options, running), unwatched);
  server.listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const list = `http://127.0.0.1:${port}/all/v0.1/servers`;
  expect((await fetch(list)).status).toBe(200);
  expect(committingSince).not.toHaveBeenCalled();
  const publisher = connect(port, '127.0.0.1');
  onTestFinished(() => void publisher.destroy());
  const taken = once(server, 'request');
  const head = ['POST /all/v0.1/publish HTTP/1.1', 'host: localhost', 'content-type: application/json'];
  publisher.write(`${head.join('\r\n')}\r\ncontent-length: 100\r\n\r\n`);
  await taken;
  expect((await fetch(list)).status).toBe(200);
  expect(committingSince).toHaveBeenCalled();
});
