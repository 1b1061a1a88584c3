import { expect, test } from 'vitest';
import { readPage } from './page.ts';

const OFFICIAL = 'io.modelcontextprotocol.registry/official';
const read = (text: string) =>
  readPage(Buffer.from(text), {
    label: 'https://r.example/v0.1/servers',
    maxServers: 100_000,
    list: 'servers',
  });

test('items keep their exact text', () => {
  const item = `{ "server": {"name":"a/b","version":"1.0.0","big":12345678901234567890,"x":1.0 } }`;
  expect(
    read(`{"servers":[ ${item} , ${item}],"metadata":{"count":2}}`).items.map(({ json }) => json),
  ).toEqual([item, item]);
});

test.each([
  [
    'active',
    '2025-09-09T00:16:49.16262Z',
    { deleted: false, updatedAt: Date.parse('2025-09-09T00:16:49.162Z') },
  ],
  ['deleted', '2025-09-09T02:16:49+02:00', { deleted: true, updatedAt: Date.parse('2025-09-09T00:16:49Z') }],
  ['Deleted', undefined, { deleted: true }],
  ['deleted', 'yesterday-ish', { deleted: true }],
  [undefined, 'yesterday-ish', { deleted: false }],
])('status %s and time %s', (status, updatedAt, expected) => {
  const item = { server: { name: 'a/b', version: '1' }, _meta: { [OFFICIAL]: { status, updatedAt } } };
  const [read1] = read(JSON.stringify({ servers: [item] })).items;
  expect(read1).toEqual({ key: '["a/b","1"]', json: JSON.stringify(item), ...expected });
});

test('what is no server travels on, to be named by the reading of the catalogue', () => {
  expect(read('{"servers":[null,{"server":{"name":"a/b"}},"x"]}').items).toEqual([
    { key: 'null', json: 'null', deleted: false },
    { key: '{"server":{"name":"a/b"}}', json: '{"server":{"name":"a/b"}}', deleted: false },
    { key: '"x"', json: '"x"', deleted: false },
  ]);
});

test.each([
  ['{"servers":[],"metadata":{"nextCursor":"a:1"}}', 'a:1'],
  ['{"servers":[],"metadata":{"next_cursor":"b"}}', 'b'],
  ['{"servers":[],"metadata":{"nextCursor":""}}', undefined],
  ['{"servers":[],"metadata":{"nextCursor":null}}', undefined],
  ['{"servers":[],"metadata":null}', undefined],
  ['{"servers":null}', undefined],
])('the cursor of %s is %s', (text, cursor) => {
  expect(read(text).nextCursor).toBe(cursor);
});

test.each([
  '{}',
  '[]',
  '{"servers":{}}',
  '"x"',
  '{"servers":[],"metadata":{"nextCursor":7}}',
  '{"error":"no"}',
])('%s is no page', (text) => {
  expect(() => read(text)).toThrow(
    expect.objectContaining({
      code: 'source/bad-answer',
      message: '"https://r.example/v0.1/servers" answered no list of servers of the MCP Registry API',
    }),
  );
});

test('a page that is cut short says where', () => {
  expect(() => read('{"servers":[{"serv')).toThrow(
    expect.objectContaining({ code: 'catalog/not-json', message: expect.stringContaining('line 1') }),
  );
});

test.each([
  ['more servers than any list', '{}', 100_001, '100000 servers'],
  ['more values than fit in memory once parsed', '[]', 4_000_001, '4000000 values'],
])('a page with %s is refused', (_what, item, count, limit) => {
  expect(() => read(`{"servers":[${`${item},`.repeat(count - 1)}${item}]}`)).toThrow(
    expect.objectContaining({
      code: 'source/too-large',
      message: `"https://r.example/v0.1/servers" answered more than ${limit} on one page`,
    }),
  );
});
