import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { newCall } from './call.ts';
import { pathWithMarks, sessionMark } from './session-mark.ts';

function markOf(target: string, headers: Readonly<Record<string, string>> = {}): string | undefined {
  const req = Object.assign(new IncomingMessage(new Socket()), { headers });
  return sessionMark(newCall(req, new ServerResponse(req), { authority: undefined, target }));
}
const ID = '3f0c2a52-7d5e-4c36-9c35-0a1b2c3d4e5f';

test('wherever a session is named, its mark is the same, and no path shows it', () => {
  const mark = markOf('/mcp', { 'mcp-session-id': ID });
  expect(mark).toMatch(/^[0-9a-f]{16}$/);
  for (const target of [
    `/messages?session_id=${ID}`,
    `/message?a=b&sessionId=${ID}`,
    `/x?SessionID=${ID}`,
    `/sse/${ID}`,
    `/messages/${ID}/post?a=b`,
  ])
    expect(markOf(target), target).toBe(mark);
  expect(pathWithMarks(`/messages/${ID}/post`)).toBe(`/messages/${mark}/post`);
});

test('other paths are what they are', () => {
  for (const path of ['/mcp', '/messages', '/api/v2/some-long-name-of-a-server', '/sse/']) {
    expect(markOf(`${path}?a=${ID}`)).toBeUndefined();
    expect(pathWithMarks(path)).toBe(path);
  }
});
