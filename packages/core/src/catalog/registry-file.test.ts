import { describe, expect, test } from 'vitest';
import { OFFICIAL_META } from './entry.ts';
import { readCatalogue } from './registry-file.ts';

const label = 'catalogue.json';
const server = (name: string, more: object = {}) => ({ name, version: '1.0.0', description: 'x', ...more });
const skill = (name: string, more: object = {}) => ({ namespace: 'io.acme', ...server(name, more) });
const read = (value: unknown) => readCatalogue(JSON.stringify(value), { label });
const names = (value: unknown) => read(value).entries.map(({ kind, name }) => `${kind} ${name}`);

describe('readCatalogue tells the formats apart', () => {
  test.each([
    ['registry-file', { data: { servers: [server('a/b')] } }],
    ['registry-file', { data: { skills: [skill('s1')] } }],
    ['toolhive-native', { servers: { b: { image: 'x/y:1', description: 'x' } } }],
    ['toolhive-native', { remote_servers: { b: { url: 'https://x.test', description: 'x' } } }],
    ['official-list', { servers: [{ server: server('a/b'), _meta: {} }] }],
    ['official-list', { servers: [server('a/b')] }],
    ['server-array', [{ server: server('a/b') }]],
    ['server-array', [server('a/b')]],
    ['server-json', server('a/b')],
  ])('%s', (format, value) => {
    expect(read(value)).toMatchObject({ format, skippedTotal: 0 });
    expect(read(value).entries).toHaveLength(1);
  });

  test('reads servers, skills and plugins of a registry file', () => {
    const data = {
      servers: [server('a/b')],
      skills: [skill('s1')],
      plugins: [skill('p1', { status: 'Deprecated' })],
    };
    expect(names({ version: '1.0.0', meta: {}, data })).toEqual(['server a/b', 'skill s1', 'plugin p1']);
  });
});

describe('readCatalogue refuses', () => {
  test.each([
    ['catalog/not-json', 'hello', 'line 1, column 1'],
    ['catalog/not-json', '{"data":\n {"servers": [1,]}}', 'line 2, column 17'],
    ['catalog/not-json', '', 'line 1, column 1'],
    ['catalog/wrong-shape', '"text"', 'a string'],
    ['catalog/wrong-shape', 'null', 'null'],
    ['catalog/wrong-shape', '{}', 'an empty object'],
    ['catalog/wrong-shape', '{"a":1,"b":2}', 'an object with "a", "b"'],
    ['catalog/wrong-shape', '{"data":{"servers":{}}}', 'an object in "data.servers" where an array belongs'],
    ['catalog/wrong-shape', '{"data":{}}', '"data" without'],
    ['catalog/wrong-shape', '{"data":[]}', 'an array in "data"'],
    ['catalog/wrong-shape', '{"servers":3}', 'a number in "servers"'],
    ['catalog/empty', '{"data":{"servers":[]}}', 'holds no entries'],
    ['catalog/empty', '[]', 'holds no entries'],
    ['catalog/mostly-invalid', '[1,2,{"name":"a/b","version":"1","description":""}]', '2 of 3 entries'],
  ])('%s: %s', (code, text, words) => {
    expect(() => readCatalogue(text, { label })).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(words) }),
    );
    expect(() => readCatalogue(text, { label })).toThrow(`"${label}"`);
  });

  test('text that nests absurdly deep', () => {
    const text = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    expect(() => readCatalogue(text, { label })).toThrow(
      expect.objectContaining({
        code: 'catalog/wrong-shape',
        message: expect.stringContaining('deeper than 200'),
      }),
    );
  });

  test('text beyond the size limit, counted in bytes', () => {
    const text = JSON.stringify([server('a/b', { title: 'ä'.repeat(100) })]);
    const bytes = Buffer.byteLength(text);
    expect(readCatalogue(text, { label, maxBytes: bytes }).entries).toHaveLength(1);
    expect(() => readCatalogue(text, { label, maxBytes: bytes - 1 })).toThrow(
      expect.objectContaining({ code: 'catalog/too-large' }),
    );
  });

  test.each([
    ['a list', '[', ']'],
    ['one entry', '[[', ']]'],
    ['what is not read', '{"servers":[],"x":[', ']}'],
    ['a native file', '{"servers":{"a":[', ']}}'],
  ])('more values than would fit in memory once parsed, in %s', (_where, open, close) => {
    expect(() => readCatalogue(`${open}${'0,'.repeat(5_000_000)}0${close}`, { label })).toThrow(
      expect.objectContaining({
        code: 'catalog/too-large',
        message: `"${label}" has more than 5000000 values, which take more memory than a catalogue may`,
      }),
    );
  });

  test('more entries than a catalogue may hold', () => {
    expect(() => readCatalogue(`[${'0,'.repeat(200_000)}0]`, { label })).toThrow(
      expect.objectContaining({
        code: 'catalog/too-large',
        message: `"${label}" holds more than 200000 entries`,
      }),
    );
  });

  test('bytes that are not UTF-8', () => {
    expect(() => readCatalogue(Uint8Array.of(0x22, 0xff, 0x22), { label })).toThrow(
      expect.objectContaining({ code: 'catalog/not-json' }),
    );
  });

  test('the format from before server.json, saying so', () => {
    const old = { id: '1', name: 'io.github.x/y', description: 'x', version_detail: { version: '1.0.0' } };
    expect(() => read([old])).toThrow(/version_detail/);
  });

  test('skills where servers belong, instead of serving them as servers', () => {
    expect(() => read([skill('s1')])).toThrow(/data\.skills/);
  });
});

describe('readCatalogue refuses a damaged list that it would not use', () => {
  test.each([
    '{"servers":[1 2],"servers":[{"name":"a/b","version":"1","description":"x"}]}',
    '{"data":{"servers":[{"name":"a/b","version":"1","description":"x"}]},"meta":{"list":[1,]}}',
    '{"x":[1,]}',
    '{"name":"a/b","version":"1","description":"x","packages":[,]}',
    '{"servers":{"b":{"image":"x/y:1","description":"x"}},"groups":[}]}',
  ])('%s', (text) => {
    expect(() => readCatalogue(text, { label })).toThrow(
      expect.objectContaining({ code: 'catalog/not-json' }),
    );
  });
});

describe('readCatalogue leaves out', () => {
  const good = [server('a/a'), server('a/b'), server('a/c'), server('a/d')];
  test.each([
    ['a bad name', server('a/b/c'), 'more than one "/"'],
    ['no version', { name: 'a/x', description: 'x' }, 'version: expected string, received undefined'],
    ['the version latest', server('a/x', { version: 'latest' }), '"latest"'],
    ['no description', { name: 'a/x', version: '1' }, 'description: expected string'],
    ['packages that are no list', server('a/x', { packages: {} }), 'packages: expected array'],
    [
      'a package without identifier',
      server('a/x', { packages: [{ registryType: 'npm' }] }),
      'packages[0].identifier',
    ],
    ['something that is no object', 7, 'expected an object'],
  ])('%s', (_, bad, reason) => {
    const result = read([...good, bad]);
    expect(result.entries).toHaveLength(4);
    expect(result.skippedTotal).toBe(1);
    expect(result.skipped[0]?.reason).toContain(reason);
  });

  test('an entry that names a member twice, as readers differ on which counts', () => {
    const text = `[${JSON.stringify(server('a/b'))},{"name":"a/x","version":"1","description":"x","name":"a/y"}]`;
    expect(readCatalogue(text, { label }).skipped).toEqual([
      { name: 'a/y', version: '1', reason: 'the member "name" occurs twice in one object' },
    ]);
  });

  test.each([
    ['x', '{"a":[{"x":1},{"x":2,"x":3}]}'],
    ['__proto__', '{"__proto__":1,"__proto__":{"y":1}}'],
    ['a', '{"a":{"lost":1,"also":2},"b":[],"a":3}'],
    ['é', '{"\\u00e9":1,"é":1}'],
  ])('an entry that names the member %s twice at any level', (member, meta) => {
    const text = `[${JSON.stringify(server('a/b'))},{"name":"a/x","version":"1","description":"x","_meta":{"p":${meta}}}]`;
    expect(readCatalogue(text, { label }).skipped[0]?.reason).toBe(
      `the member "${member}" occurs twice in one object`,
    );
  });

  test('an entry that names a member twice, once with escapes that an entry before it has V8 misread', () => {
    const before = server('a/b', { '\\u00': 0 });
    const text = `[${JSON.stringify(before)},${JSON.stringify(server('a/x')).slice(0, -1)},"\\u006eame":"a/y"}]`;
    expect(readCatalogue(text, { label }).skipped[0]?.reason).toBe(
      'the member "name" occurs twice in one object',
    );
  });

  test('nothing of an entry whose members have names of array methods or indexes', () => {
    const meta = { length: 1, 0: { 0: [], 1: [{ constructor: {} }] }, hasOwnProperty: [null, [[{}]]] };
    expect(read([server('a/b', { _meta: { meta } })])).toMatchObject({ skippedTotal: 0 });
  });

  test('an entry for a reason that is no longer than people read, whatever the entry holds', () => {
    const key = 'k'.repeat(100_000);
    const text = `[{"name":"a/b","version":"1","description":"x","_meta":{"${key}":1,"${key}":2}}]`;
    const { skipped } = readCatalogue(text, { label, maxInvalidShare: 1 });
    expect(skipped[0]?.reason).toMatch(/^the member "k+$/);
    expect(skipped[0]?.reason).toHaveLength(512);
  });

  test('at most 50 in the list, while counting all', () => {
    const result = read([
      ...Array.from({ length: 60 }, (_, i) => server(`a/s${i}`)),
      ...Array.from({ length: 60 }, () => 1),
    ]);
    expect([result.skipped.length, result.skippedTotal]).toEqual([50, 60]);
  });
});

test('accepts dirty entries of the official registry', () => {
  const dirty = server('a/b', { repository: {}, packages: null, remotes: [], description: '', icons: 'x' });
  expect(read([dirty]).entries).toHaveLength(1);
});

test('keeps the last of equal entries and says so', () => {
  const result = read([server('a/b', { title: 'old' }), server('a/c'), server('a/b', { title: 'new' })]);
  expect(result.entries.map(({ document }) => document.title)).toEqual(['new', undefined]);
  expect(result.warnings).toEqual([expect.stringContaining('"a/b" version "1.0.0" occurs more than once')]);
  expect(result.replaced).toBe(1);
});

test('does not confuse a skill with a server, or namespaces with each other', () => {
  const data = { servers: [server('s1')], skills: [skill('s1'), { ...skill('s1'), namespace: 'io.other' }] };
  expect(names({ data })).toEqual(['server s1', 'skill s1', 'skill s1']);
});

test('keeps the exact text: member order, digits, escapes, unknown members, __proto__', () => {
  const json =
    '{"zeta":1.50,"2":0,"1":12345678901234567890,"description":"\\u0041","__proto__":{"x":1},"name":"a/b","version":"1e400"}';
  const [entry] = readCatalogue(`[ ${json.replaceAll(',"', ' ,\n "')} ]`, { label }).entries;
  expect(entry?.json).toBe(json);
});

test('keeps the digits of numbers when it converts a native file', () => {
  const text =
    '{"servers":{"b":{"image":"x/y:2.1.0","description":"x","metadata":{"stars":1.50,"id":12345678901234567890}}}}';
  const [entry] = readCatalogue(text, { label }).entries;
  expect(entry?.json).toContain('"metadata":{"stars":1.50,"id":12345678901234567890}');
});

test('reads the official block beside an entry and keeps its times as written', () => {
  const official = {
    status: 'deprecated',
    publishedAt: '2025-09-09T03:30:11.72135Z',
    isLatest: false,
    extra: 1,
  };
  const [entry] = read([{ server: server('a/b'), _meta: { [OFFICIAL_META]: official } }]).entries;
  expect(entry).toMatchObject({ official });
});

test('warns of a page that is not the last', () => {
  const value = { servers: [server('a/b')], metadata: { nextCursor: 'x', count: 1 } };
  expect(read(value).warnings).toEqual([expect.stringContaining('one page of a longer list')]);
});

test('reads a file with a byte order mark', () => {
  expect(readCatalogue(`\uFEFF${JSON.stringify([server('a/b')])}`, { label }).entries).toHaveLength(1);
});
