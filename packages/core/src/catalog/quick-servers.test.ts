import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MAX_DEPTH } from './catalogue-text.ts';
import { readServersQuickly } from './quick-servers.ts';
import { readCatalogue } from './registry-file.ts';
import { serverDocument } from './server-json.ts';
import { starterServers } from './starter.ts';

const good = { name: 'io.acme/x', version: '1.0.0', description: 'Says "hi: [{"' };
const quick = (value: unknown) => readServersQuickly(Buffer.from(JSON.stringify(value, null, 2)));
const slow = (text: string) => readCatalogue(text, { label: 'x' }).entries;
const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
const plain = (entries: readonly object[] | undefined) =>
  entries?.map((entry) => ({ ...entry, official: undefined }));

describe('readServersQuickly', () => {
  const documents = starterServers().map(({ document }) => document);
  const wrapped = documents.map((server) => ({ server, _meta: { x: 1 } }));

  test.each([
    ['a registry file', { version: '1', meta: { last_updated: 'x' }, data: { servers: documents } }],
    ['an answer of a registry', { servers: wrapped, metadata: { count: 1 } }],
    ['a list of documents', documents],
    ['a list of answers', wrapped],
    ['equal entries, of which the last counts', [good, { ...good, description: 'later' }]],
  ])('reads %s as readCatalogue does, with the exact text of each entry', (_what, value) => {
    expect(plain(quick(value))).toEqual(plain(slow(JSON.stringify(value, null, 2))));
  });

  test.each([undefined, 1, 2, '\t'])('reads any layout: %j', (space) => {
    const text = `${JSON.stringify(wrapped, null, space)}\n`;
    expect(readServersQuickly(Buffer.from(text))?.length).toBe(wrapped.length);
  });

  test('reads what escapes the characters of HTML, as the official registry does', () => {
    const text = '[{"name":"io.acme/x","version":"1","description":"\\u003ca \\u0026 b\\u003e"}]';
    const [entry] = readServersQuickly(Buffer.from(text)) ?? [];
    expect([entry?.document.description, entry?.json]).toEqual(['<a & b>', text.slice(1, -1)]);
  });

  test.each([
    ['no JSON', '{'],
    ['no UTF-8', Buffer.from([0x5b, 0xff, 0x5d])],
    ['no list', '{"a": 1}'],
    ['an empty list', '[]'],
    ['one document', JSON.stringify(good)],
    ['the older format', '{"servers": {"x": {"image": "x"}}}'],
    ['a member that occurs twice', '[{"name":"a/b","version":"1","description":"","\\u006eame":"c/d"}]'],
    ['an invalid entry among others', JSON.stringify([good, { ...good, name: '../x' }])],
    ['a skill', JSON.stringify([{ ...good, namespace: 'io.acme' }])],
    ['the format before server.json', JSON.stringify([{ ...good, version_detail: {} }])],
    ['a number that would be lost', '[{"name":"a/b","version":"1","description":"","_meta":{"n":1.00e400}}]'],
    ['a member that zod drops', `[${JSON.stringify(good).slice(0, -1)},"_meta":{"__proto__":{"a":1}}}]`],
    ['deep nesting', `[${JSON.stringify(good).slice(0, -1)},"x":${nested(MAX_DEPTH - 1)}}]`],
  ])('leaves %s to readCatalogue', (_what, text) => {
    expect(readServersQuickly(Buffer.from(text))).toBeUndefined();
  });

  test('reads what is as deep as readCatalogue takes', () => {
    const text = `[${JSON.stringify(good).slice(0, -1)},"x":${nested(MAX_DEPTH - 2)}}]`;
    expect(readServersQuickly(Buffer.from(text))).toHaveLength(1);
    expect(slow(text)).toHaveLength(1);
  });

  const odd = fc.oneof(
    fc.constantFrom<unknown>(null, '', 'x', 1, true, [], {}, [null], ['x'], [{}], { a: 'x' }, { a: {} }),
    fc.constant<unknown>(JSON.parse('{"__proto__":{"a":1}}')),
    fc.jsonValue({ maxDepth: 2 }),
  );
  const members = 'name version description title websiteUrl $schema repository packages remotes _meta'.split(
    ' ',
  );
  const parts =
    'registryType identifier transport type url headers variables environmentVariables isRequired'.split(' ');
  const changed = fc
    .tuple(fc.constantFrom(...members), odd, fc.constantFrom(...parts), odd, fc.nat(documents.length - 1))
    .map(([member, value, part, inner, at]) => {
      const { packages, ...document } = structuredClone(documents[at] ?? good) as Record<string, unknown>;
      const [first = {}] = Array.isArray(packages) ? packages : [];
      const entry = { registryType: 'npm', identifier: 'x', ...(first as object), [part]: inner };
      return member === 'packages' ? { ...document, packages: [entry] } : { ...document, [member]: value };
    });

  test('takes no document that server.json does not allow, and the same of those it takes', () => {
    fc.assert(
      fc.property(changed, (document) => {
        const text = JSON.stringify([document]);
        const [entry] = readServersQuickly(Buffer.from(text)) ?? [];
        if (entry === undefined) return;
        expect(serverDocument.safeParse(JSON.parse(text)[0]).success).toBe(true);
        expect(entry.document).toEqual(serverDocument.parse(JSON.parse(text)[0]));
      }),
      { numRuns: 500 },
    );
  });
});
