import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { SessionSeal, type SharedSession } from './sealed-session.ts';

const BODY = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}';
const open: SharedSession = { is: 'open', principal: 'ann', name: 'n', body: BODY };

test.each<SharedSession>([
  open,
  { is: 'ended' },
  { is: 'open', principal: null, name: '~!', body: undefined },
])('a session comes back as it was sealed: %j', (session) => {
  const seal = new SessionSeal('id', 'http://s.example/mcp');
  expect(seal.open(seal.seal(session))).toEqual(session);
});

test('neither another id nor another server opens it, nor are they in the same place', () => {
  const seal = new SessionSeal('id', 'http://s.example/mcp');
  for (const other of [
    new SessionSeal('ie', 'http://s.example/mcp'),
    new SessionSeal('id', 'http://t.example/mcp'),
  ]) {
    expect(other.place).not.toBe(seal.place);
    expect(other.open(seal.seal(open))).toBeUndefined();
  }
});

test('what was changed, cut or made up is no session', () => {
  const seal = new SessionSeal('id', 's');
  const sealed = Buffer.from(seal.seal(open), 'base64url');
  fc.assert(
    fc.property(fc.nat({ max: sealed.length - 1 }), fc.integer({ min: 1, max: 255 }), (at, by) => {
      const changed = Buffer.from(sealed);
      changed[at] = (changed[at] ?? 0) ^ by;
      expect(seal.open(changed.toString('base64url'))).toBeUndefined();
      expect(seal.open(sealed.subarray(0, at).toString('base64url'))).toBeUndefined();
    }),
  );
  fc.assert(fc.property(fc.string(), (text) => seal.open(text) === undefined));
});

test.each([
  { is: 'open', principal: 'ann', name: 'a\r\nb', body: BODY },
  { is: 'open', principal: 'ann', name: '', body: BODY },
  { is: 'open', principal: 1, name: 'n', body: BODY },
  { is: 'open', principal: 'ann', name: 'n', body: '{"method":"tools/call"}' },
  { is: 'open', principal: 'ann', name: 'n', body: 'no JSON' },
  { is: 'other' },
  [],
])('what no session could be is none, whoever sealed it: %j', (value) => {
  const seal = new SessionSeal('id', 's');
  expect(seal.open(seal.seal(value as never))).toBeUndefined();
});
