import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyText } from '@skep/core/json/any-text.fixture.ts';
import { parse as parseJsonc, type ParseError } from 'jsonc-parser';
import { parse as parseToml } from 'smol-toml';
import { parse as parseYaml } from 'yaml';
import { editText, readEntries } from './edit-text.ts';
import type { Emptied } from './formats/editor.ts';
import { entryFor } from './entry.ts';
import { CLIENTS, type Client } from './table.ts';

const clientNamed = (name: string): Client => CLIENTS.find((one) => one.name === name)!;
const vscode = clientNamed('vscode');
const goose = clientNamed('goose');
const listed = clientNamed('continue');
const codex = clientNamed('codex');
const vibe = clientNamed('mistral-vibe');

const entry = (client: Client, name: string) =>
  entryFor(client, name, { url: 'http://127.0.0.1:4243/x/mcp', mode: 'streamable-http' });

async function added(client: Client, text: string, ...names: readonly string[]): Promise<string> {
  const changes = names.map((name) => ({ name, value: entry(client, name) }));
  return (await editText(client, text, { changes, emptied: undefined })).text;
}

/** Adds entries one by one, then takes them away in another order. */
async function roundTrip(client: Client, text: string, names: readonly string[]): Promise<string> {
  let now = text;
  let emptied: Emptied | undefined;
  for (const name of names) {
    const edited = await editText(client, now, { changes: [{ name, value: entry(client, name) }], emptied });
    now = edited.text;
    emptied = edited.emptied ?? emptied;
  }
  expect(await readEntries(client, now)).toEqual(
    new Map([
      ...(await readEntries(client, text)),
      ...names.map((name) => [name, entry(client, name)] as const),
    ]),
  );
  for (const name of names.toReversed())
    now = (await editText(client, now, { changes: [{ name, value: undefined }], emptied })).text;
  return now;
}

const JSON_TEXTS = [
  '{}',
  '{ }',
  '{\n}\n',
  '{"servers":{}}',
  '{"servers":{"a":{"url":"u"}}}',
  '{"servers":{"a":{"url":"u"}},"inputs":[]}',
  '{\n  "servers": {}\n}\n',
  '{\n  "servers": { }\n}\n',
  '{\n  "servers": {\n  }\n}\n',
  '{\n  // nothing here yet\n}\n',
  '{\n  "servers": {\n    // nothing here yet\n  }\n}',
  '{\n\t"servers": {\n\t\t"a": { "url": "u" } // mine\n\t\t// the end\n\t}, // all\n\t"inputs": [1, 2]\n}\n',
  '{\n  "servers": {\n    "a": {\n      "url": "u",\n    },\n  },\n}\n',
  '{\n  "servers": {\n    "a": {}, /* kept */ // too\n  }\n}\n',
  '{\n  "servers": {"a": {}, "b": {"x": [1, 2]}}\n}\n',
  '// head\n{\n  "inputs": [] // none\n}\n// tail\n',
  '{\n    "$schema": "x",\n\n    "inputs": {}\n}',
  '{"__proto__": {"a": 1}, "servers": {"__proto__": {"b": 2}}}',
];
const GOOSE_TEXTS = [
  '# only a remark\n',
  'GOOSE_MODEL: x # mine\n',
  'GOOSE_MODEL: x',
  'extensions:\n',
  'extensions: # none\nother: 1\n',
  'extensions: {}\nother: 1\n',
  'extensions: {} # none\n',
  'extensions:\n  a:\n    uri: u # mine\n    envs: {}\n  # the end\nother: |\n  text\n\n  more\n',
  'a: 1\nextensions:\n    a:\n        uri: "u"\n',
  'other: |\n  text',
  '---\nother: [1, 2]\nextensions:\n  a: {uri: u}\n\n# last\n',
  'extensions: {a: {uri: u}}\n',
  'extensions: {"a": {"uri": "u"}} # one line\n',
];
const LIST_TEXTS = [
  'name: me\nmcpServers:\n  - name: a\n    url: u # mine\nmodels: []\n',
  'mcpServers:\n- name: a\n  url: u\n',
  'mcpServers: []\nname: me\n',
  'name: me\n',
  'mcpServers: [{name: a, url: u}]\n',
];
const CODEX_TEXTS = [
  '# mine\nmodel = "o3" # best\n',
  'model = "o3"',
  '\n',
  '[mcp_servers.a]\ncommand = "npx" # mine\nargs = ["-y", "x"]\n\n[mcp_servers.a.env]\nK = "v]="\n\n# the end\n',
  '[profiles.x]\nmodel = """\n[mcp_servers.no]\n"""\n\n\n',
  'mcp_servers.a.command = "x"\n',
];
const VIBE_TEXTS = [
  'mcp_servers = []\nmodel = "x" # y\n',
  'mcp_servers = [ ]\n',
  'mcp_servers = [\n  { name = "a", url = "u" }, # mine\n]\n\n[tools]\nx = 1\n',
  'mcp_servers = [{ name = "a, ]", url = "u" }]\n',
  '[[mcp_servers]]\nname = "a"\nurl = "u"\n[mcp_servers.headers]\nK = "v"\n\n[tools]\nx = 1\n',
  'model = "x"\n',
];
const TEXTS: readonly (readonly [Client, readonly string[]])[] = [
  [vscode, ['', ' \n', ...JSON_TEXTS]],
  [goose, ['', ...GOOSE_TEXTS]],
  [listed, ['', ...LIST_TEXTS]],
  [codex, ['', ...CODEX_TEXTS]],
  [vibe, ['', ...VIBE_TEXTS]],
];
const CASES = TEXTS.flatMap(([client, texts]) => texts.map((text) => [client.name, text, client] as const));

describe('an entry that is written and taken away', () => {
  test.each(CASES)('leaves the bytes of %s as they were: %j', async (_, text, client) => {
    // The command removes a file that it made.
    if (text.trim() === '')
      expect((await roundTrip(client, text, ['one', 'two'])).trim()).toMatch(/^(?:\{\})?$/);
    else expect(await roundTrip(client, text, ['one', 'two'])).toBe(text);
  });

  test.each(CASES)('leaves line ends and byte order mark of %s: %j', async (_, text, client) => {
    const windows = `\u{FEFF}${text.replaceAll('\n', '\r\n')}`;
    const now = await added(client, windows, 'one', 'two');
    expect(now.startsWith('\u{FEFF}')).toBe(true);
    if (text.includes('\n')) expect(now.replaceAll('\r\n', '')).not.toContain('\n');
    if (text.trim() !== '') expect(await roundTrip(client, windows, ['one', 'two'])).toBe(windows);
  });

  test('may have any name, in every format', async () => {
    const names = fc.uniqueArray(
      fc.oneof(
        fc.string({ unit: 'grapheme', minLength: 1, maxLength: 30 }),
        anyText({ minLength: 1, maxLength: 30 }),
        fc.constantFrom(
          '__proto__',
          'constructor',
          'a.b',
          'x"y',
          "x'y",
          'a\nb',
          ' ',
          '~',
          'null',
          '1',
          'true',
          '#',
          '- a',
          'a: b',
          '[x]',
          'io.x/y',
          '\u007F',
          '\u0085',
          '\u2028',
          '<<',
          '=',
          '? x',
          '*a',
          '&a',
          '!t',
        ),
      ),
      { minLength: 1, maxLength: 3 },
    );
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...CASES), names, async ([, text, client], keys) => {
        const taken = new Set((await readEntries(client, text)).keys());
        const free = keys.filter((key) => !taken.has(key) && key.isWellFormed());
        const left = await roundTrip(client, text, free);
        if (text.trim() !== '') expect(left).toBe(text);
      }),
      { numRuns: 120 },
    );
  });
});

describe('what is written', () => {
  test.each(TEXTS.flatMap(([client, texts]) => texts.map((text) => [client.name, text, client] as const)))(
    'is read by the library of %s: %j',
    async (_, text, client) => {
      const now = await added(client, text, 'one');
      const errors: ParseError[] = [];
      const root: unknown =
        client.format === 'jsonc'
          ? parseJsonc(now, errors, { allowTrailingComma: true })
          : client.format === 'yaml'
            ? parseYaml(now)
            : parseToml(now);
      expect(errors).toEqual([]);
      const servers = (root as Record<string, unknown>)[client.key];
      expect(JSON.stringify(servers)).toContain(JSON.stringify(entry(client, 'one')).slice(1, -1));
    },
  );

  test('keeps plain JSON plain', async () => {
    const now = await added(vscode, '{"servers":{"a":{"url":"u"}},"inputs":[]}', 'one');
    expect(now).toBe(
      '{"servers":{"a":{"url":"u"},"one":{"type":"http","url":"http://127.0.0.1:4243/x/mcp"}},"inputs":[]}',
    );
  });

  test('stands behind the remark on the last line', async () => {
    expect(await added(vscode, '{\n  "servers": {\n    "a": {} // mine\n  }\n}\n', 'one')).toBe(
      '{\n  "servers": {\n    "a": {}, // mine\n    "one": {\n      "type": "http",\n      "url": "http://127.0.0.1:4243/x/mcp"\n    }\n  }\n}\n',
    );
  });

  test.each([
    [vscode, '{\n  "servers": {\n    "one": { "type": "sse", /* old */ "url": "x" }\n  }\n}\n', '/* old */'],
    [goose, 'extensions:\n  one: {uri: x}\n  two:\n    uri: y # mine\n', '# mine'],
    [listed, 'mcpServers:\n  - name: one\n    url: x\n  - name: two # mine\n', '# mine'],
    [codex, '[mcp_servers.one]\nurl = "x"\n\n# mine\n[mcp_servers.two]\n', '# mine'],
    [vibe, '[[mcp_servers]]\nname = "one"\nurl = "x"\n\n# mine\n[[mcp_servers]]\nname = "two"\n', '# mine'],
    [vibe, 'mcp_servers = [{ name = "one" }, { name = "two" }] # mine\n', '# mine'],
  ] as const)('takes the place of an older one of %o', async (client, text, remark) => {
    const now = await added(client, text, 'one');
    expect((await readEntries(client, now)).get('one')).toEqual(entry(client, 'one'));
    expect(now).toContain(remark);
    expect([...(await readEntries(client, now)).keys()]).toEqual([
      ...(await readEntries(client, text)).keys(),
    ]);
  });
});

describe('a file is left alone', () => {
  test.each([
    [vscode, '{"servers": ', 'not valid JSON at line 1'],
    [vscode, '[]', 'does not hold an object'],
    [vscode, '{"servers": []}', '"servers" in it is not what it should be'],
    [vscode, '{"servers": {}, "servers": {}}', 'a name stands in it twice'],
    [vscode, '{"servers": {"a": {}, "a": {}}}', 'a name stands in it twice'],
    [vscode, '['.repeat(100_000), ''],
    [goose, 'extensions:\n - a\n', '"extensions" in it is not what it should be'],
    [goose, 'a: [\n', 'not valid YAML'],
    [goose, 'a: 1\n---\nb: 2\n', 'not valid YAML'],

    [listed, 'mcpServers: {}\n', '"mcpServers" in it is not what it should be'],
    [listed, 'mcpServers:\n - name: a\n - name: a\n', 'twice'],
    [codex, 'mcp_servers = { a = { url = "u" } }\n', ''],
    [codex, 'mcp_servers = 3\n', '"mcp_servers" in it is not what it should be'],
    [codex, 'a = \n', ''],
  ] as const)('%o %j', async (client, text, why) => {
    await expect(added(client, text, 'one')).rejects.toThrow(why);
  });
});
