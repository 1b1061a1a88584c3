import type { ToolCount } from '@skep/proxy/call/tool-counts.ts';
import type { Proxy, ProxyOptions } from '@skep/proxy/start.ts';

/** A proxy that listens nowhere, before a server that calls itself as `greet` says and has these tools, of which so much was counted. */
export function silentProxy(
  { name, port }: ProxyOptions,
  greet: (name: string) => Promise<unknown>,
  {
    tools = [],
    toolCounts = [],
  }: { readonly tools?: readonly object[]; readonly toolCounts?: readonly ToolCount[] } = {},
): Proxy {
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    port,
    greet: async () => ({ serverInfo: await greet(name), capabilities: { tools: {} } }),
    ask: async () => JSON.stringify({ jsonrpc: '2.0', id: 0, result: { tools } }),
    toolCounts: () => toolCounts,
    behind: () => () => {},
    backendEnded() {},
    backendStarted() {},
    close: async () => {},
  };
}
