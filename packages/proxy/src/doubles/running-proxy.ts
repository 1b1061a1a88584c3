import type { OutgoingHttpHeaders } from 'node:http';
import type { Log } from '@skep/core/log/log.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { valuesOf } from '@skep/core/settings/define-settings.ts';
import type { Backend } from '../backend/backend.ts';
import { proxySettings } from '../settings.ts';
import { startProxy, type Proxy, type ProxyOptions } from '../start.ts';
import { postJson, type Answer } from './http-client.ts';

/** A proxy on a free loopback port; `await using` closes it. */
export type RunningProxy = Proxy & AsyncDisposable & { readonly origin: string };

export const SETTINGS = {
  name: 'test',
  host: '127.0.0.1',
  port: 0,
  trustProxyHeaders: false,
  ...valuesOf(proxySettings, new Map()),
  graceMs: 1_000,
  skepVersion: '1',
  log: silentLog,
} as const satisfies Partial<ProxyOptions>;

export async function runningProxy(
  server: { readonly backend: Backend },
  options: Partial<ProxyOptions> & { readonly log?: Log } = {},
): Promise<RunningProxy> {
  const proxy = await startProxy({ ...SETTINGS, backend: server.backend, ...options });
  return {
    ...proxy,
    origin: `http://127.0.0.1:${proxy.port}`,
    [Symbol.asyncDispose]: () => proxy.close(),
  };
}

export function initializeRequest(id: unknown = 1, protocolVersion = '2025-11-25'): object {
  return {
    jsonrpc: '2.0',
    id,
    method: 'initialize',
    params: { protocolVersion, capabilities: {}, clientInfo: { name: 'test', version: '1' } },
  };
}

/** Initializes a client, with `own` headers, and gives back its session header. */
export async function newSession(
  url: string,
  version?: string,
  own: OutgoingHttpHeaders = {},
): Promise<{ readonly 'Mcp-Session-Id': string }> {
  const answer: Answer = await postJson(url, initializeRequest('init', version), own);
  const id = answer.headers['mcp-session-id'];
  if (typeof id !== 'string') throw new TypeError(`no session: ${answer.status} ${answer.text}`);
  const announced = { jsonrpc: '2.0', method: 'notifications/initialized' };
  await postJson(url, announced, { ...own, 'Mcp-Session-Id': id });
  return { 'Mcp-Session-Id': id };
}
