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
