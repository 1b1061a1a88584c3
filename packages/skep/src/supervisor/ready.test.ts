import { expect, test } from 'vitest';
import { MemoryRuntime } from '../runtime/memory/memory-runtime.ts';
import { systemClock } from './clock.ts';
import { untilReady } from './ready.ts';

const spec = {
  name: 'a1',
  reference: 'fake:1',
  args: [],
  env: {},
  labels: {},
  stdio: false,
  mounts: [],
  network: 'bridge',
  ports: [],
  privileged: false,
} as const;

async function ready(answer: (init: RequestInit) => Promise<Response>, signal: AbortSignal): Promise<string> {
  const runtime = new MemoryRuntime();
  await runtime.create(spec);
  await runtime.start('a1');
  return untilReady({
    runtime,
    name: 'a1',
    clock: systemClock,
    tell() {},
    signal,
    endpoint: 'http://127.0.0.1:1/mcp',
    fetch: (_url, init = {}) => answer(init),
  });
}

const opened = (): Response => new Response('{}', { headers: { 'mcp-session-id': 's' } });

test('a server that refuses to end the session of the check is ready all the same', async () => {
  const methods: string[] = [];
  const outcome = ready(async ({ method = '' }) => {
    methods.push(method);
    if (method === 'DELETE') throw new TypeError('fetch failed');
    return opened();
  }, new AbortController().signal);
  expect(await outcome).toBe('ready');
  expect(methods).toEqual(['POST', 'DELETE']);
});

test('a server that never answers to the end of the session does not hold up its own stop', async () => {
  const stop = new AbortController();
  const outcome = ready(async ({ method, signal }) => {
    if (method !== 'DELETE') return opened();
    queueMicrotask(() => stop.abort(new Error('stopped')));
    return new Promise((_, reject) =>
      signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
    );
  }, stop.signal);
  await expect(outcome).rejects.toThrow('stopped');
});
