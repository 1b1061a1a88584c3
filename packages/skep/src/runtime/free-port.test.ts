import { createServer, type Server } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { choosePort, isFree, planPort } from './free-port.ts';

const servers: Server[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => new Promise((resolve) => server.close(resolve))));
});

function occupy(wanted = 0): Promise<number> {
  const server = createServer();
  servers.push(server);
  return new Promise((resolve) => {
    server.listen(wanted, '127.0.0.1', () => {
      const address = server.address();
      resolve(typeof address === 'object' && address ? address.port : 0);
    });
  });
}

/** A port that nobody listens on now. */
async function unused(): Promise<number> {
  const port = await occupy();
  await new Promise((resolve) => servers.pop()?.close(resolve));
  return port;
}

const none = new Map<number, string>();

describe('the proxy port', () => {
  test('a busy wanted port is an error that names it', async () => {
    const port = await occupy();
    const request = { host: '127.0.0.1', wanted: port, promised: async () => none, random: () => 1 };
    await expect(choosePort(request)).rejects.toMatchObject({
      code: 'run/port-busy',
      message: `requested proxy port ${port} is not available: another program listens there`,
    });
  });
  // Elsewhere only the first address of loopback is there.
  test.runIf(process.platform === 'linux')(
    'is looked for on the host where it is to be, and on no other',
    async () => {
      const port = await occupy();
      const request = { wanted: port, promised: async () => none, random: () => 1 };
      expect(await choosePort({ ...request, host: '127.0.0.2' })).toBe(port);
      await expect(choosePort({ ...request, host: '0.0.0.0' })).rejects.toMatchObject({
        code: 'run/port-busy',
      });
    },
  );
  test('a wanted port promised to another workload is an error', async () => {
    const request = {
      host: '127.0.0.1',
      wanted: 40_001,
      promised: async () => new Map([[40_001, 'a1']]),
      random: () => 1,
    };
    await expect(choosePort(request)).rejects.toMatchObject({
      code: 'run/port-busy',
      message: 'requested proxy port 40001 is not available: workload "a1" has it',
    });
  });
  test('a drawn port that is busy is drawn again', async () => {
    const busy = await occupy();
    const draws = [busy, busy];
    const port = await choosePort({
      host: '127.0.0.1',
      promised: async () => none,
      random: (min) => draws.shift() ?? min + 7_777,
    });
    expect(port).not.toBe(busy);
    expect(await isFree('127.0.0.1', port)).toBe(true);
  });
  test('a port that is taken while a package is fetched is chosen anew', async () => {
    const drawn = await unused();
    const draws = [drawn];
    const random = (min: number): number => draws.shift() ?? min + 5_432;
    const choose = await planPort({ host: '127.0.0.1', promised: async () => none, random });
    await occupy(drawn);
    const port = await choose();
    expect(port).not.toBe(drawn);
    expect(await isFree('127.0.0.1', port)).toBe(true);
  });
  test('a port that another run was promised while a package is fetched is chosen anew', async () => {
    const promised = new Map<number, string>();
    const random = (min: number): number => min + 5_431 + promised.size;
    const choose = await planPort({ host: '127.0.0.1', promised: async () => promised, random });
    const first = await choose();
    promised.set(first, 'a1');
    expect(await choose()).not.toBe(first);
  });
  test('a wanted port that is taken while a package is fetched is an error that names it', async () => {
    const wanted = await unused();
    const plan = { host: '127.0.0.1', wanted, promised: async () => none, random: () => 1 };
    const choose = await planPort(plan);
    await occupy(wanted);
    await expect(choose()).rejects.toMatchObject({
      code: 'run/port-busy',
      message: `requested proxy port ${wanted} is not available: another program listens there`,
    });
  });
  test('a wanted port that is taken from the start is told before anything is fetched', async () => {
    const wanted = await occupy();
    const plan = { host: '127.0.0.1', wanted, promised: async () => none, random: () => 1 };
    await expect(planPort(plan)).rejects.toMatchObject({ code: 'run/port-busy' });
  });
  test('after ten draws in vain the first free one is taken, and where none is left that is an error', async () => {
    const everything = Array.from({ length: 65_536 }, (_, port) => [port, 'a1'] as const);
    const request = { host: '127.0.0.1', random: () => 10_000 };
    const free = await unused();
    const allBut = new Map(everything.filter(([port]) => port !== free));
    expect(free).toBeGreaterThanOrEqual(10_000);
    expect(await choosePort({ ...request, promised: async () => allBut })).toBe(free);
    await expect(choosePort({ ...request, promised: async () => new Map(everything) })).rejects.toMatchObject(
      { code: 'run/port-busy', message: 'could not find an available port' },
    );
  });
  test('the listener of the check is closed again', async () => {
    const port = await choosePort({
      host: '127.0.0.1',
      promised: async () => none,
      random: (min) => min + 6_543,
    });
    expect(await isFree('127.0.0.1', port)).toBe(true);
  });
});
