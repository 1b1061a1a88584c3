import { describe, expect, test } from 'vitest';
import { OFFICIAL_META } from './entry.ts';
import { decodeServerItem, decodeServerPage, listFrame } from './registry-wire.ts';

const time = '2026-01-02T03:04:05Z';
const meta = { status: 'active', publishedAt: time, updatedAt: time, statusChangedAt: time, isLatest: true };
const documentJson = '{"name":"io.acme/x","version":"1.0.0","description":"x","n":1.50}';

describe('what the server builds', () => {
  test('can be read by the client', () => {
    const item = `{"server":${documentJson},"_meta":{"${OFFICIAL_META}":${JSON.stringify(meta)}}}`;
    const text = listFrame.open + [item, item].join(listFrame.separator) + listFrame.close(2, 'next');
    const page = decodeServerPage(JSON.parse(text), 'test');
    expect(page).toMatchObject({ skipped: [], nextCursor: 'next' });
    expect(page.entries).toHaveLength(2);
    expect(page.entries[0]).toMatchObject({
      kind: 'server',
      name: 'io.acme/x',
      version: '1.0.0',
      official: meta,
    });
  });

  test('leaves nextCursor out on the last page', () => {
    expect(JSON.parse(listFrame.open + listFrame.close(0))).toEqual({ servers: [], metadata: { count: 0 } });
  });
});

describe('what the client reads', () => {
  test.each([
    [{ servers: null }, 0],
    [{ servers: [], metadata: null }, 0],
    [{ servers: [{ server: JSON.parse(documentJson) }] }, 1],
  ])('accepts %j', (value, count) => {
    expect(decodeServerPage(value, 'test').entries).toHaveLength(count);
  });

  test('lists items it cannot read instead of failing', () => {
    const page = decodeServerPage(
      { servers: [7, { server: { name: 'x' } }, { server: JSON.parse(documentJson) }] },
      'test',
    );
    expect(page.entries).toHaveLength(1);
    expect(page.skipped.map(({ name }) => name)).toEqual(['servers[0]', 'servers[1]']);
  });

  test('goes on without what is malformed in the official block, and with the rest of it', () => {
    const read = (official: unknown) =>
      decodeServerItem({ server: JSON.parse(documentJson), _meta: { [OFFICIAL_META]: official } }, 'test')
        .official;
    expect(read({ publishedAt: 'yesterday', isLatest: 'yes', status: 'deleted' })).toEqual({
      status: 'deleted',
    });
    expect(read('nonsense')).toBeUndefined();
  });

  test.each([[null], ['x'], [[]], [{ servers: {} }]])('refuses %j as a page', (value) => {
    expect(() => decodeServerPage(value, 'https://r.test')).toThrow(
      expect.objectContaining({
        code: 'catalog/bad-answer',
        message: expect.stringContaining('https://r.test'),
      }),
    );
  });

  test.each([[null], [{}], [{ server: { name: 'io.acme/x' } }]])('refuses %j as a server', (value) => {
    expect(() => decodeServerItem(value, 'https://r.test')).toThrow(
      expect.objectContaining({ code: 'catalog/bad-answer' }),
    );
  });
});
