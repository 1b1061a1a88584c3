import * as fc from 'fast-check';
import { afterEach, expect, test } from 'vitest';
import { readFirstBytes, readNextHello } from './client-hello.ts';
import { Peers } from './peers.fixture.ts';

const peers = new Peers();
afterEach(() => peers.end());

/** The same handshake in records of other sizes. */
function cut(hello: Buffer, sizes: readonly number[]): Buffer {
  const parts: Buffer[] = [];
  let rest = hello.subarray(5);
  for (const size of [...sizes, rest.length]) {
    const part = rest.subarray(0, size);
    if (part.length === 0) break;
    rest = rest.subarray(part.length);
    parts.push(Buffer.from([0x16, 3, 1, part.length >> 8, part.length & 0xff]), part);
  }
  return Buffer.concat(parts);
}

test.each([
  ['TLS 1.3', {}],
  ['TLS 1.2', { maxVersion: 'TLSv1.2' }],
] as const)('the name in a hello of %s is found, as soon as the hello is whole', async (_what, options) => {
  const hello = await peers.hello({ servername: 'Api.Example', ...options });
  expect(readFirstBytes(hello)).toEqual({ kind: 'hello', length: hello.length, name: 'Api.Example' });
  for (let length = 0; length < hello.length; length += 1)
    expect(readFirstBytes(hello.subarray(0, length))).toEqual({ kind: 'more' });
  expect(readFirstBytes(Buffer.concat([hello, Buffer.from([20, 3, 3, 0, 1, 1])]))).toMatchObject({
    kind: 'hello',
    length: hello.length,
  });
});

test('a hello without a name has none', async () => {
  expect(readFirstBytes(await peers.hello({ servername: '' }))).not.toHaveProperty('name');
});

test('a hello in any number of records is one', async () => {
  const hello = await peers.hello({ servername: 'api.example' });
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 300 }), { maxLength: 20 }), (sizes) => {
      const bytes = cut(hello, sizes);
      expect(readFirstBytes(bytes)).toEqual({ kind: 'hello', length: bytes.length, name: 'api.example' });
    }),
  );
});

test('what does not begin like TLS is another protocol', () => {
  expect(readFirstBytes(Buffer.from('GET / HTTP/1.1\r\n'))).toEqual({ kind: 'other' });
  expect(readFirstBytes(Buffer.from('SSH-2.0-x\r\n'))).toEqual({ kind: 'other' });
  expect(readFirstBytes(Buffer.from([0x15]))).toEqual({ kind: 'more' });
  expect(readFirstBytes(Buffer.from([0x15, 0, 0, 0]))).toEqual({ kind: 'other' });
});

test('a hello that is changed anywhere is another name, or cannot be read, and never fails', async () => {
  const hello = await peers.hello({ servername: 'api.example' });
  const change = fc.tuple(fc.integer({ min: 0, max: hello.length - 1 }), fc.integer({ min: 0, max: 255 }));
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 5 }), (changes) => {
      const bytes = Buffer.from(hello);
      for (const [at, byte] of changes) bytes[at] = byte;
      const first = readFirstBytes(bytes);
      expect(['more', 'other', 'hello', 'broken']).toContain(first.kind);
    }),
    { numRuns: 2_000 },
  );
});

const extension = (type: number, content: Buffer) =>
  Buffer.concat([Buffer.from([type >> 8, type & 0xff, content.length >> 8, content.length & 0xff]), content]);
const names = (...all: readonly string[]) => {
  const list = Buffer.concat(
    all.map((name) => Buffer.concat([Buffer.from([0, 0, name.length]), Buffer.from(name, 'latin1')])),
  );
  return Buffer.concat([Buffer.from([list.length >> 8, list.length & 0xff]), list]);
};

/** A hello with these extensions and nothing else. */
function madeOf(...extensions: readonly Buffer[]): Buffer {
  const all = Buffer.concat(extensions);
  const fixed = Buffer.concat([Buffer.alloc(35), Buffer.from([0, 2, 0x13, 1, 1, 0])]);
  const length = fixed.length + 2 + all.length;
  const head = Buffer.from([1, 0, length >> 8, length & 0xff]);
  const message = Buffer.concat([head, fixed, Buffer.from([all.length >> 8, all.length & 0xff]), all]);
  return cut(Buffer.concat([Buffer.alloc(5), message]), []);
}

/** Both messages in one record. */
function coalesced(...records: readonly Buffer[]): Buffer {
  return cut(Buffer.concat([Buffer.alloc(5), ...records.map((one) => one.subarray(5))]), []);
}

const ALERT = Buffer.from([21, 3, 3, 0, 2, 1, 90]);
const CIPHERS = Buffer.from([20, 3, 3, 0, 1, 1]);
const DATA = Buffer.from([23, 3, 3, 0, 3, 1, 2, 3]);

test.each([
  ['two names', madeOf(extension(0, names('a.example', 'b.example')))],
  ['the extension twice', madeOf(extension(0, names('a.example')), extension(0, names('b.example')))],
  ['a name that is no plain text', madeOf(extension(0, names('ex\u00adample.com')))],
  ['a name with a NUL', madeOf(extension(0, names('a.example\0.evil')))],
  ['a list that is longer than its extension', madeOf(extension(0, Buffer.from([0, 9, 0, 0, 1, 97])))],
  ['another message than a hello', Buffer.from([0x16, 3, 1, 0, 4, 2, 0, 0, 0])],
  ['an alert within the hello', Buffer.from([0x16, 3, 1, 0, 1, 1, 21, 3, 3, 0, 2, 2, 49])],
  ['an empty record', Buffer.from([0x16, 3, 1, 0, 0])],
  ['a record that is too long', Buffer.from([0x16, 3, 1, 0x41, 0])],
  ['an alert before the hello', Buffer.concat([ALERT, madeOf()])],
  ['changed ciphers before the hello', Buffer.concat([CIPHERS, madeOf()])],
  ['data before the hello', Buffer.concat([DATA, madeOf()])],
  ['another message in the record of the hello', coalesced(madeOf(), madeOf())],
  ['a hello that is too long', Buffer.from([0x16, 3, 1, 0, 4, 1, 1, 0, 0])],
])('%s cannot be read', (_what, bytes) => {
  expect(readFirstBytes(bytes)).toEqual({ kind: 'broken' });
});

test('a hello that is made by hand can', () => {
  const hello = madeOf(extension(9, Buffer.alloc(3)), extension(0, names('a.example')));
  expect(readFirstBytes(hello)).toEqual({ kind: 'hello', length: hello.length, name: 'a.example' });
});

test('the next hello is found behind all records that may come before it', () => {
  const hello = madeOf(extension(0, names('b.example')));
  const before = Buffer.concat([DATA, ALERT, CIPHERS]);
  const bytes = Buffer.concat([before, hello]);
  for (let length = 0; length < bytes.length; length += 1)
    expect(readNextHello(bytes.subarray(0, length)).kind).toBe('more');
  expect(readNextHello(bytes)).toMatchObject({ kind: 'hello', name: 'b.example' });
  expect(readNextHello(hello)).toMatchObject({ kind: 'hello', name: 'b.example' });
});

test('what is no next hello, or comes behind too much, cannot be read', () => {
  const much = Buffer.concat([Buffer.from([23, 3, 3, 0xff, 0xff]), Buffer.alloc(0xffff), DATA]);
  for (const bytes of [
    Buffer.from('GET /'),
    Buffer.concat([CIPHERS, Buffer.from([22, 3, 3, 0, 1, 16])]),
    much,
  ])
    expect(readNextHello(bytes)).toEqual({ kind: 'broken' });
});
