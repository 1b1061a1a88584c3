import { once } from 'node:events';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { EndpointEvents } from './endpoint-event.ts';
import { endpointFor } from './told-address.ts';

async function through(
  pieces: readonly Buffer[],
  rewrite = (address: string) => `<${address}>`,
): Promise<string> {
  return text(Readable.from(pieces).pipe(new EndpointEvents(rewrite)));
}

describe('an event stream passes', () => {
  test.each([
    ['event: endpoint\ndata: /m?a=1\n\n', 'event: endpoint\ndata: </m?a=1>\n\n'],
    ['event:endpoint\r\ndata:/m\r\n\r\n', 'event:endpoint\r\ndata:</m>\r\n\r\n'],
    ['event: endpoint\rdata: /m\r\rdata: x\r\r', 'event: endpoint\rdata: </m>\r\rdata: x\r\r'],
    ['id: 1\nretry: 5\nevent: endpoint\ndata: /m\n\n', 'id: 1\nretry: 5\nevent: endpoint\ndata: </m>\n\n'],
    [': hi\n\nevent: message\ndata: /m\n\n', undefined],
    ['event: endpoints\ndata: /m\n\n', undefined],
    ['eventual: endpoint\ndata: /m\n\n', undefined],
    ['event: endpoint\n\ndata: /m\n\n', undefined],
    ['data: é\u0000\uFFFD\n\n', undefined],
    ['event: endpoint\ndata: unfinished', undefined],
  ])('%j', async (sent, expected = sent) => {
    expect(await through([Buffer.from(sent)])).toBe(expected);
  });

  test('the same in whatever pieces it comes, or is refused for the same reason', async () => {
    // What came before a refusal differs: a piece is passed on or not.
    const outcome = (pieces: readonly Buffer[]) =>
      through(pieces).catch((error: unknown) => `refused: ${String(error)}`);
    const piece = fc.constantFrom(
      'event: endpoint',
      'event',
      ':',
      'data: /m',
      'data',
      '\n',
      '\r\n',
      '\r',
      '\n\n',
      'x',
      'é',
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(piece, { maxLength: 25 }),
        fc.array(fc.nat(80), { maxLength: 6 }),
        async (parts, cuts) => {
          const whole = Buffer.from(parts.join(''));
          const at = [
            0,
            ...cuts.map((cut) => Math.min(cut, whole.length)).toSorted((a, b) => a - b),
            whole.length,
          ];
          const pieces = at
            .slice(1)
            .map((end, n) => whole.subarray(at[n], end))
            .filter(({ length }) => length > 0);
          expect(await outcome(pieces)).toBe(await outcome([whole]));
        },
      ),
    );
  });

  test('at once, however long its lines are', async () => {
    const passing = new EndpointEvents((address) => address);
    passing.write(`event: message\ndata: ${'x'.repeat(5_000_000)}`);
    expect(String(passing.read()).length).toBeGreaterThan(5_000_000);
  });
});

test.each([
  ['data: /b/mcp\nevent: endpoint\n\n', 'before the name'],
  ['event: message\ndata\nevent: endpoint\ndata: /b/mcp\n\n', 'before the name'],
  ['event: endpoint\ndata: /b\ndata: /mcp\n\n', 'in several lines'],
  [`event: endpoint\ndata: ${'\t'.repeat(10_000)}/b/mcp\n\n`, 'too long'],
])('an address that only its reader would see ends the stream (%#)', async (text, why) => {
  for (const size of [1, 7, text.length]) {
    const events = new EndpointEvents((address) => address);
    const failed = once(events, 'error');
    for (let at = 0; at < text.length && !events.destroyed; at += size)
      events.write(text.slice(at, at + size));
    expect(((await failed) as [Error])[0].message).toContain(why);
  }
});

test('a byte order mark hides no address', async () => {
  for (const size of [1, 2, 100]) {
    const events = new EndpointEvents(() => '/here');
    const text = Buffer.from('\ufeffevent: endpoint\ndata: /b/mcp\n\n');
    for (let at = 0; at < text.length; at += size) events.write(text.subarray(at, at + size));
    events.end();
    expect(Buffer.concat(await events.toArray()).toString()).toBe('\ufeffevent: endpoint\ndata: /here\n\n');
  }
});

describe('the address of an endpoint event', () => {
  const asked = new URL('http://127.0.0.1:4001/sse');
  test.each([
    ['/messages?s=a%2Fb&c=1,2', '', undefined, '/messages?s=a%2Fb&c=1,2'],
    ['/messages?s=1', '/p', undefined, '/p/messages?s=1'],
    ['/p/messages?s=1', '/p', undefined, '/p/p/messages?s=1'],
    ['/messages/?s=1', '/messages', undefined, '/messages/messages/?s=1'],
    ['messages/?s=1', '', undefined, '/messages/?s=1'],
    ['?s=1', '/p', undefined, '/p/sse?s=1'],
    ['http://127.0.0.1:4001/m?s=1', '/p', undefined, '/p/m?s=1'],
    ['http://localhost:3000/m?s=1', '', undefined, '/m?s=1'],
    ['http://0.0.0.0:3000', '', undefined, '/'],
    ['/m', '/p', 'https://a.test', 'https://a.test/p/m'],
    ['https://elsewhere.test/m', '/p', 'https://a.test', 'https://elsewhere.test/m'],
    ['//elsewhere.test/m', '/p', undefined, '//elsewhere.test/m'],
    ['javascript:x', '/p', undefined, 'javascript:x'],
    // What would lead past the prefix, to whatever else stands at the same entrance.
    ['/../b/mcp', '/a', undefined, '/a/b/mcp'],
    ['/a/../b/mcp', '/a', undefined, '/a/b/mcp'],
    ['/%2e%2e/b/mcp', '/a', undefined, '/a/b/mcp'],
    ['\t/b/..\\..\\b/mcp', '/a', undefined, '/a/b/mcp'],
    ['//127.0.0.1:4000/b/mcp', '/a', undefined, '/a/b/mcp'],
    ['http://box.lan:4000/b/mcp', '/a', undefined, '/a/b/mcp'],
    ['https://a.test/b', '/a', 'https://a.test', 'https://a.test/a/b'],
    ['http://127.0.0.1:4001//evil.test/m', '', undefined, '/.//evil.test/m'],
    ['/b\u00c3\u00a9?\u00c3\u00a9', '', undefined, '/b%c3%a9?\u00c3\u00a9'],
  ])('%s after %j, seen as %s', (address, prefix, forwardedOrigin, expected) => {
    expect(endpointFor(address, { url: asked, prefix, forwardedOrigin, entrance: 'box.lan:4000' })).toBe(
      expected,
    );
  });
});
