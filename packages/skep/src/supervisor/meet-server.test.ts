import { systemClock } from '@skep/core/time/clock.ts';
import { runningProxy } from '@skep/proxy/doubles/running-proxy.ts';
import { scriptedHttpServer } from '@skep/proxy/doubles/scripted-http-server.ts';
import { expect, test } from 'vitest';
import { decodeRunConfig } from '../run-config/run-config.ts';
import { MemoryRuntime } from '../runtime/doubles/memory-runtime.ts';
import { STDIO_SPEC as spec } from '../runtime/doubles/stdio-spec.ts';
import { meetServer } from './meet-server.ts';

test('a server over HTTP is asked for its tools by nobody who counts, and its session is ended', async () => {
  await using server = await scriptedHttpServer('http', (message, { reply }) => {
    if (message.method !== 'tools/list') return undefined;
    reply(message, { tools: [{ name: 'x' }] });
    return 'handled';
  });
  await using proxy = await runningProxy(server);
  const runtime = new MemoryRuntime({ 'fake:1': () => {} });
  await runtime.create(spec);
  await runtime.start('a1');
  const config = decodeRunConfig({ name: 'a1', image: 'fake:1', transport: 'streamable-http' }, 'f');
  const found = await meetServer(config, proxy, {
    runtime,
    clock: systemClock,
    tell: () => {},
    signal: new AbortController().signal,
    fetch,
    version: '1',
    note: () => Promise.resolve(),
  });
  expect(found).toMatchObject({ complete: true, tools: [{ name: 'x' }] });
  const methods = server.received.map(({ method }) => method).filter((method) => method !== undefined);
  expect(methods).toEqual(['initialize', 'notifications/initialized', 'tools/list']);
  await expect.poll(() => server.sessions).toBe(0);
  expect(server.headers.some((headers) => 'x-skep-pass' in headers)).toBe(false);
  expect(proxy.toolCounts?.()).toEqual([]);
});
