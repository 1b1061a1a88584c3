import { expect, test } from 'vitest';
import type { Terminal } from '@skep/core/command/terminal.ts';
import { tellReady } from './tell-start.ts';

const LONG = 'modelcontextprotocol-server-memory';

test.each([
  [
    'a1',
    { liveOut: true, liveErr: true, width: 80 },
    'to the URL above.\n  skep logs a1   skep stop a1   skep rm a1\n',
  ],
  ['a1', { liveErr: true, width: 80 }, 'to http://x/mcp.\n  skep logs a1   skep stop a1   skep rm a1\n'],
  [
    LONG,
    { liveOut: true, liveErr: true, width: 60 },
    `Connect an MCP client to the URL above.\n  skep logs ${LONG}\n  skep stop ${LONG}\n  skep rm ${LONG}\n`,
  ],
  [LONG, { width: 60 }, `to http://x/mcp.\n  skep logs ${LONG}   skep stop ${LONG}   skep rm ${LONG}\n`],
])('%s on %j is told: …%s', (name, screen, end) => {
  let out = '';
  let err = '';
  const terminal = {
    ...screen,
    out: (text: string) => void (out += text),
    err: (text: string) => void (err += text),
  } as Terminal;
  const url = 'http://x/mcp';
  tellReady({ name, url, endpoint: { url, port: 1 }, card: [] }, terminal);
  expect(out).toBe('http://x/mcp\n');
  expect(err.startsWith(`${name} is running\nConnect`)).toBe(true);
  expect(err.endsWith(end)).toBe(true);
});

test('the command that connects a client is named where the front door is open', () => {
  let err = '';
  const terminal = { width: 80, out() {}, err: (text: string) => void (err += text) } as unknown as Terminal;
  const endpoint = { url: 'http://x/mcp', port: 1, front: { is: 'open', port: 4243 } } as const;
  tellReady({ name: 'a1', url: endpoint.url, endpoint, card: [] }, terminal);
  expect(err).toContain('to http://127.0.0.1:4243/a1/mcp, or with skep connect CLIENT a1.\n');
});
