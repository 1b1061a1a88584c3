import { mkdtemp, rm } from 'node:fs/promises';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { places as placesOf } from '@skep/core/files/places.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { ask, postJson } from '@skep/proxy/doubles/http-client.ts';
import { newSession, runningProxy } from '@skep/proxy/doubles/running-proxy.ts';
import { scriptedServer } from '@skep/proxy/doubles/scripted-server.ts';
import type { Proxy } from '@skep/proxy/start.ts';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { openFrontDoor } from './front-door.ts';
import { forgetFrontDoor, frontUrl, readFrontDoor } from './front-state.ts';
import { writeStatus, type StatusWord } from './state.ts';

const SELF = { pid: process.pid, started: 'me' };
const OWN = 'http://127.0.0.1:1/mcp';
const PAGE = 'https://app.example';

/** A port that nobody listens on now. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  return typeof address === 'object' && address ? address.port : 0;
}

async function home() {
  const folder = await mkdtemp(join(tmpdir(), 'skep-front-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return placesOf({ env: {}, home: folder, platform: 'linux', temp: folder });
}

interface Made {
  readonly port?: number;
  readonly proxies?: Readonly<Record<string, Proxy>>;
}

async function door({ port, proxies = {} }: Made = {}) {
  const [places, clock] = [await home(), manualClock()];
  const wanted = { port: port ?? (await freePort()) };
  const hosted = new Map(Object.entries(proxies));
  const opened = vi.fn();
  const front = openFrontDoor({
    places,
    self: SELF,
    platform: process.platform,
    fetch,
    clock,
    log: silentLog,
    wanted: async () => wanted.port,
    find: (name) => hosted.get(name),
    onOpen: opened,
  });
  onTestFinished(() => front.close());
  const state = await front.look();
  const read = () => readFrontDoor({ places, isAlive: ({ started }) => started === SELF.started });
  return { front, state, places, clock, wanted, read, opened, port: wanted.port };
}

async function twoServers(options: Parameters<typeof runningProxy>[1] = {}) {
  const serverOf = (name: string) =>
    scriptedServer((message, server) => {
      if (message.method !== 'tools/call') return undefined;
      server.reply(message, { content: [{ type: 'text', text: name }] });
      return 'handled';
    });
  const proxies = {
    one: await runningProxy(serverOf('one'), options),
    two: await runningProxy(serverOf('two'), options),
  };
  onTestFinished(async () => void (await Promise.all(Object.values(proxies).map((proxy) => proxy.close()))));
  return proxies;
}

const CALL = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x' } };

/** The status and body of one raw request, as it is written. */
async function raw(port: number, target: string, headers = `Host: 127.0.0.1:${port}`): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.write(`GET ${target} HTTP/1.1\r\n${headers}\r\nConnection: close\r\n\r\n`);
  let text = '';
  for await (const chunk of socket.setEncoding('utf8')) text += String(chunk);
  return text;
}

describe('behind the front door', () => {
  test('each workload answers under its own name, and its sessions are those of its own port', async () => {
    const proxies = await twoServers();
    const { port } = await door({ proxies });
    for (const [name, proxy] of Object.entries(proxies)) {
      const session = await newSession(frontUrl(port, name, OWN));
      expect((await postJson(frontUrl(port, name, OWN), CALL, session)).text).toContain(`"text":"${name}"`);
      expect((await postJson(proxy.url, CALL, session)).text).toContain(`"text":"${name}"`);
    }
  });

  test('a session of one workload is none of another', async () => {
    const { port } = await door({ proxies: await twoServers() });
    const session = await newSession(frontUrl(port, 'one', OWN));
    expect(await postJson(frontUrl(port, 'two', OWN), CALL, session)).toMatchObject({ status: 404 });
  });

  test.each([
    '/one/../two/mcp',
    '/one/%2e%2e/two/health',
    '//two/health',
    '/one//health',
    '/o%6Ee/health',
    '/ONE/health',
    '/one./health',
    '/one',
    '/',
    '*',
  ])('%s is answered by nobody', async (target) => {
    const { port } = await door({ proxies: await twoServers() });
    expect(await raw(port, target)).toMatch(/^HTTP\/1.1 (?:400|404) /u);
  });

  test("paths beside the endpoint are the named workload's", async () => {
    const { port } = await door({ proxies: await twoServers() });
    const health = await ask(`http://127.0.0.1:${port}/one/health`, { method: 'GET' });
    expect(JSON.parse(health.text)).toMatchObject({ status: 'healthy' });
  });

  test.each([
    ['a name that a page made up', 'Host: evil.example'],
    ['a name beside the right one', 'Host: 127.0.0.1:1\r\nHost: 127.0.0.1'],
    ['the port of the workload itself', 'OWN'],
  ])('nobody is let in under %s', async (_, header) => {
    const proxies = await twoServers();
    const { port } = await door({ proxies });
    const headers = header === 'OWN' ? `Host: 127.0.0.1:${proxies.one.port}` : header;
    for (const target of ['/one/health', '/nobody/mcp', '/.well-known/skep', '/'])
      expect(await raw(port, target, headers)).toMatch(/^HTTP\/1.1 40[03] /u);
  });

  test('the pages of a workload are let in to it alone', async () => {
    const { one } = await twoServers({ allowedOrigins: [PAGE] });
    const { two } = await twoServers();
    const { port } = await door({ proxies: { one, two } });
    const from = async (name: string, origin: string) => {
      const url = `http://127.0.0.1:${port}/${name}/health`;
      return (await ask(url, { method: 'GET', headers: { Origin: origin } })).status;
    };
    expect(await from('one', PAGE)).toBe(200);
    expect(await from('two', PAGE)).toBe(403);
    expect(await from('nobody', PAGE)).toBe(403);
    expect(await from('one', `http://127.0.0.1:${one.port}`)).toBe(403);
  });

  test('a page that a workload serves there is let in to none, also where a browser names no origin', async () => {
    const { port } = await door({ proxies: await twoServers() });
    const pages = [
      { Origin: `http://127.0.0.1:${port}` },
      { Origin: `http://localhost:${port}` },
      { 'Sec-Fetch-Site': 'same-origin' },
    ];
    for (const headers of pages) {
      for (const path of ['/one/health', '/one/mcp', '/.well-known/skep'])
        expect(await ask(`http://127.0.0.1:${port}${path}`, { method: 'GET', headers })).toMatchObject({
          status: 403,
        });
    }
    const typed = { 'Sec-Fetch-Site': 'none' };
    expect(await ask(`http://127.0.0.1:${port}/one/health`, { method: 'GET', headers: typed })).toMatchObject(
      { status: 200 },
    );
  });

  test.each([
    ['stopped', 503, 'start it with: skep start away'],
    ['error', 503, 'start it with: skep start away'],
    ['starting', 503, 'is starting'],
    ['running', 503, 'is not served here'],
    [undefined, 404, 'no workload is named'],
  ] as const)('one that is %s is told how to go on', async (status: StatusWord | undefined, code, text) => {
    const { port, places } = await door();
    const time = '2026-01-02T03:04:05.000Z';
    const rest = { created_at: time, updated_at: time, process_id: 0, process_started: '' };
    if (status) await writeStatus(places, 'away', { status, ...rest });
    const answer = await postJson(frontUrl(port, 'away', OWN), CALL);
    expect(answer.status).toBe(code);
    expect(JSON.parse(answer.text)).toMatchObject({ error: { message: expect.stringContaining(text) } });
  });

  test('a workload that is stopped lets calls in flight end, and refuses new ones', async () => {
    let release = (): void => {};
    const server = scriptedServer((message, self) => {
      if (message.method !== 'tools/call') return undefined;
      release = () => self.reply(message, { content: [] });
      return 'handled';
    });
    const proxy = await runningProxy(server);
    const { port } = await door({ proxies: { one: proxy } });
    const session = await newSession(frontUrl(port, 'one', OWN));
    const answer = postJson(frontUrl(port, 'one', OWN), CALL, session);
    await server.heard(({ method }) => method === 'tools/call');
    const closed = proxy.close();
    expect((await postJson(frontUrl(port, 'one', OWN), CALL, session)).status).toBe(503);
    release();
    expect((await answer).status).toBe(200);
    await closed;
  });
});

describe('the address of the front door', () => {
  test('is written down for commands while it is open, and for no longer', async () => {
    const { front, state, read, port } = await door();
    expect(state).toMatchObject({ is: 'open', port });
    expect(read()).toEqual({ is: 'open', port, process: SELF });
    await front.close();
    expect(read()).toEqual({ is: 'resting' });
  });

  test('a port that another program has is told with its holder and the setting, and tried again', async () => {
    const other = createServer((_req, res) => void res.end('{}')).listen(0, '127.0.0.1');
    await once(other, 'listening');
    const address = other.address();
    const port = typeof address === 'object' && address ? address.port : 0;
    const { state, read, clock, opened } = await door({ port });
    expect(opened).not.toHaveBeenCalled();
    const holder = process.platform === 'linux' ? `\\(process ${process.pid}\\)` : 'another program';
    const why = new RegExp(`^port ${port} of the front door is taken by .*${holder}; .*front-port N`, 'u');
    expect(state).toMatchObject({ is: 'closed', why: expect.stringMatching(why) });
    expect(read()).toEqual(state);
    other.close();
    await once(other, 'close');
    await expect.poll(() => (clock.pass(30_000), read().is)).toBe('open');
    await expect.poll(() => opened).toHaveBeenCalledOnce();
  });

  test('another front door is named as such', async () => {
    const first = await door();
    const second = await door({ port: first.port });
    expect(second.state).toMatchObject({
      why: expect.stringContaining(`the Skep supervisor of another home (process ${process.pid})`),
    });
  });

  test('0 is none, which is written down once, and again when that has changed', async () => {
    const { front, state, read, places, wanted } = await door({ port: 0 });
    expect([state, read()]).toEqual([{ is: 'off' }, { is: 'off' }]);
    await forgetFrontDoor(places);
    expect([await front.look(), read()]).toEqual([{ is: 'off' }, { is: 'resting' }]);
    wanted.port = await freePort();
    expect(await front.look()).toMatchObject({ is: 'open' });
    wanted.port = 0;
    expect([await front.look(), read()]).toEqual([{ is: 'off' }, { is: 'off' }]);
  });

  test('it moves when the setting does, and closes what came by the old one', async () => {
    const { front, wanted, port } = await door();
    const stream = request(`http://127.0.0.1:${port}/`, { agent: false });
    stream.on('error', () => {});
    wanted.port = await freePort();
    expect(await front.look()).toMatchObject({ is: 'open', port: wanted.port });
    await expect(raw(port, '/')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    stream.destroy();
  });

  test("in a copy of the state directory the door is another's", async () => {
    const { places, read } = await door();
    const copy = { ...places, stateDir: places.dataDir };
    expect(read().is).toBe('open');
    expect(readFrontDoor({ places: copy, isAlive: () => true })).toEqual({ is: 'resting' });
  });
});
