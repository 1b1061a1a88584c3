import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FLOOD_SERVER } from './fixtures/flood-server.ts';
import { npmRegistryWith } from './fixtures/npm-registry.ts';
import { component, title } from './require.ts';
import { ask, openUser, type TestUser } from './skep.ts';

const sandbox = await component('sandbox');

const PACKAGE = 'skep-test-flood';
const READERS = 4;
const COUNT = 10_000;
const BYTES = 32 * 1024;

let user: TestUser;
let registry: Awaited<ReturnType<typeof npmRegistryWith>>;

/** Opens a session and its stream, and then reads nothing of it. */
async function openUnread(url: string): Promise<http.IncomingMessage> {
  const init = {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'slow', version: '1' },
  };
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: init });
  const opened = await fetch(url, { method: 'POST', headers, body });
  await opened.text();
  const session = opened.headers.get('mcp-session-id') ?? '';
  const request = http.get(url, { headers: { accept: 'text/event-stream', 'mcp-session-id': session } });
  const [stream] = (await once(request, 'response')) as [http.IncomingMessage];
  expect(stream.statusCode).toBe(200);
  return stream.pause();
}

/** What was on its way when the proxy gave the reader up, bytes. */
async function readToEnd(stream: http.IncomingMessage): Promise<number> {
  let received = 0;
  stream.on('data', (chunk: Buffer) => (received += chunk.length));
  // The proxy breaks the connection off, in the middle of an event.
  stream.on('error', () => {});
  const over = new Promise((resolve) => stream.once('close', resolve));
  stream.resume();
  await over;
  return received;
}

/** Most memory that the process ever held, bytes (proc_pid_status(5)). */
function peakMemory(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}

describe.skipIf(!sandbox.available)(title('clients that do not read their streams', sandbox), () => {
  beforeEach(async () => {
    registry = await npmRegistryWith(PACKAGE, FLOOD_SERVER);
    user = openUser({ SKEP_RUNTIME: 'sandbox', npm_config_registry: registry.url });
  });
  afterEach(async () => {
    await user.end();
    await registry[Symbol.asyncDispose]();
  });

  test('cost the proxy a bounded amount of memory, and nobody else waits for them', async () => {
    const { code, stdout, stderr } = await user.skep(['run', `npx://${PACKAGE}`]);
    expect(code, stderr).toBe(0);
    const url = stdout.trim();
    const [supervisor = 0] = user.supervisors();
    const streams = await Promise.all(Array.from({ length: READERS }, () => openUnread(url)));
    const before = peakMemory(supervisor);
    const flood = { name: 'flood', arguments: { count: COUNT, bytes: BYTES } };
    expect(await ask(url, 'tools/call', flood)).toMatchObject({
      result: { content: [{ text: String(COUNT) }] },
    });
    const grown = peakMemory(supervisor) - before;
    // Whoever kept everything, if only once for all readers, would hold COUNT × BYTES.
    expect(grown).toBeLessThan((COUNT * BYTES) / 2);
    for (const received of await Promise.all(streams.map(readToEnd)))
      expect(received).toBeLessThan(BYTES * 1000);
  });
});
