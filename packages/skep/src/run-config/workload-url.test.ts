import { expect, test } from 'vitest';
import { workloadUrl } from './workload-url.ts';

test.each([
  ['127.0.0.2', 'http://127.0.0.2:4001/mcp'],
  ['0.0.0.0', 'http://127.0.0.1:4001/mcp'],
  ['::', 'http://[::1]:4001/mcp'],
  ['::1', 'http://[::1]:4001/mcp'],
  ['fd00::a:1', 'http://[fd00::a:1]:4001/mcp'],
])('clients of a proxy at %s connect to %s', (host, url) => {
  expect(workloadUrl({ name: 'a', host, port: 4001, proxy_mode: 'streamable-http' })).toBe(url);
});

test.each([
  ['streamable-http', undefined, '/mcp'],
  ['sse', undefined, '/sse#a'],
  ['streamable-http', 'https://x.test/api/mcp?key=hush#top', '/api/mcp'],
  ['streamable-http', 'https://x.test?key=hush', '/'],
  ['sse', 'https://x.test/events?key=hush', '/events#a'],
  ['sse', 'https://x.test/?key=hush', '/sse#a'],
] as const)('clients of a %s proxy in front of %s are told the path %s', (proxy_mode, remote_url, path) => {
  const config = { name: 'a', host: '127.0.0.1', port: 4001, proxy_mode };
  const url = workloadUrl(remote_url === undefined ? config : { ...config, remote_url });
  expect(url).toBe(`http://127.0.0.1:4001${path}`);
});
