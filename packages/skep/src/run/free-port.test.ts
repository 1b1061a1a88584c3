import { createServer, type Server } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { choosePort, isFree } from './free-port.ts';

const servers: Server[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => new Promise((resolve) => server.close(resolve))));
});

function occupy(): Promise<number> {
  const server = createServer();
  servers.push(server);
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve(typeof address === 'object' && address ? address.port : 0);
    });
  });
}

const none = new Set<number>();

describe('the proxy port', () => {
  test('a busy wanted port is an error that names it', async () => {
    const port = await occupy();
    const request = { host: '127.0.0.1', wanted: port, promised: none, random: () => 1 };
    await expect(choosePort(request)).rejects.toMatchObject({
      code: 'run/port-busy',
      message: `requested proxy port ${port} is not available`,
    });
  });
  test('a wanted port promised to another workload is an error', async () => {
    const request = { host: '127.0.0.1', wanted: 40_001, promised: new Set([40_001]), random: () => 1 };
    await expect(choosePort(request)).rejects.toMatchObject({ code: 'run/port-busy' });
  });
  test('a drawn port that is busy is drawn again', async () => {
    const busy = await occupy();
    const draws = [busy, busy];
    const port = await choosePort({
      host: '127.0.0.1',
      promised: none,
      random: (min) => draws.shift() ?? min + 7_777,
    });
    expect(port).not.toBe(busy);
    expect(await isFree('127.0.0.1', port)).toBe(true);
  });
  test('the listener of the check is closed again', async () => {
    const port = await choosePort({ host: '127.0.0.1', promised: none, random: (min) => min + 6_543 });
    expect(await isFree('127.0.0.1', port)).toBe(true);
  });
});
