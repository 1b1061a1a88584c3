import { describe, expect, test } from 'vitest';
import { checkHeaders, headersOf } from './header-forward.ts';

const plain = (headers: Record<string, string>) => ({ add_plaintext_headers: headers });

describe('a header for a server elsewhere', () => {
  test.each(
    'Host Connection Keep-Alive TE Trailer Upgrade HTTP2-Settings Proxy-Authorization Proxy-Authenticate Proxy-Connection Transfer-Encoding Content-Length Forwarded X-Forwarded-For X-Forwarded-Host X-Forwarded-Proto X-Real-IP Mcp-Session-Id MCP-Protocol-Version Last-Event-ID'.split(' '),
  )('is never %s, in whatever case, plain or from a secret', (name) => {
    for (const written of [name, name.toLowerCase(), ` ${name.toUpperCase()} `]) {
      expect(() => checkHeaders(plain({ [written]: 'x' }))).toThrow('cannot be forwarded');
      expect(() => checkHeaders({ add_headers_from_secret: { [written]: 'secret' } })).toThrow('cannot be forwarded');
    }
  }); // prettier-ignore

  test.each(['', ' ', 'a b', 'a:b', 'ä', 'a\nb', 'x'.repeat(257)].map((name) => [name.slice(0, 9), name]))(
    'has a name that is a token, unlike %j',
    (_shown, name) => {
      expect(() => checkHeaders(plain({ [name]: 'x' }))).toThrow('invalid header name');
    },
  );

  test.each(['a\rb', 'a\nb', 'a\0b', 'a\x7f', 'a\u0100', 'x'.repeat(8_193)].map((value) => [JSON.stringify(value).slice(0, 9), value]))(
    'has a value that can be sent, unlike %s, which is not told',
    (_shown, value) => {
      const refused = expect.objectContaining({ message: 'the value of the header "A" cannot be sent' });
      expect(() => checkHeaders(plain({ A: value }))).toThrow(refused);
      const fromSecret = { add_headers_from_secret: { A: 'name' } };
      expect(() => headersOf({ header_forward: fromSecret }, { SKEP_REMOTE_HEADER_0: value })).toThrow(refused);
    },
  ); // prettier-ignore

  test('may be of any length up to the limits, empty too, and the last of one name counts', () => {
    const long = { [`x${'y'.repeat(255)}`]: 'x'.repeat(8_192) };
    expect(checkHeaders(plain(long))).toEqual(plain(long));
    expect(checkHeaders(plain({ 'X-Key': 'a', 'x-key': '' }))).toEqual(plain({ 'x-key': '' }));
  });

  test('from a secret stands for a plain one of its name', () => {
    const both = { ...plain({ 'x-key': 'a', Other: 'b' }), add_headers_from_secret: { 'X-Key': 'name' } };
    expect(checkHeaders(both)).toEqual({
      ...plain({ Other: 'b' }),
      add_headers_from_secret: { 'X-Key': 'name' },
    });
    expect(headersOf({ header_forward: both }, { SKEP_REMOTE_HEADER_0: 'hush' })).toMatchObject({
      'X-Key': 'hush',
    });
    expect(() => headersOf({ header_forward: both }, {})).toThrow('is not there');
  });
});
