import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { editText } from './edit-text.ts';
import { entryFor } from './entry.ts';
import { CLIENTS, fileOf, signOf, type Client } from './table.ts';

const GOLDEN = join(import.meta.dirname, 'golden');
const read = (name: string): Promise<string> => readFile(join(GOLDEN, name), 'utf8');

const URL = 'http://127.0.0.1:4243/notes/mcp';
const REGISTRY_NAME = 'io.example/files';

/** What each file gets: a server by its URL, and one of a registry by its command. */
function changesFor(client: Client) {
  const files = client.namesAsRegistry === true ? REGISTRY_NAME : 'files';
  return [
    { name: 'notes', value: entryFor(client, 'notes', { url: URL, mode: 'streamable-http' }) },
    { name: files, value: entryFor(client, files, { command: ['skep', 'proxy', 'stdio', 'files'] }) },
  ];
}

describe.each(CLIENTS.map((client) => [client.name, client] as const))('the file of %s', (name, client) => {
  test('gets two servers, and keeps everything else', async () => {
    const before = await read(`${name}.before`);
    const { text } = await editText(client, before, { changes: changesFor(client), emptied: undefined });
    await expect(text).toMatchFileSnapshot(join(GOLDEN, `${name}.after`));
  });

  test('is what it was when they are gone', async () => {
    const before = await read(`${name}.before`);
    const edited = await editText(client, before, { changes: changesFor(client), emptied: undefined });
    const changes = changesFor(client).map((one) => ({ name: one.name, value: undefined }));
    const { text } = await editText(client, edited.text, { changes, emptied: edited.emptied });
    expect(text).toBe(before);
  });
});

test('servers that speak SSE have the words for it', () => {
  const target = { url: 'http://h/sse', mode: 'sse' } as const;
  const entries = CLIENTS.map((client) => [client.name, entryFor(client, 'x', target)] as const);
  const words = entries.flatMap(([name, { type, transport }]) =>
    type === undefined && transport === undefined ? [] : [[name, type ?? transport]],
  );
  const sse = words.filter(([, word]) => word === 'sse').map(([name]) => name);
  expect(words.filter(([, word]) => word !== 'sse')).toEqual([
    ['mistral-vibe', 'http'],
    ['opencode', 'remote'],
  ]);
  expect(sse).toHaveLength(15);
  expect(Object.fromEntries(entries)['gemini-cli']).toEqual({ url: 'http://h/sse' });
});

describe('where files are', () => {
  const desks = [
    { home: '/home/ann', platform: 'linux' },
    { home: '/Users/ann', platform: 'darwin' },
    { home: 'C:\\Users\\ann', platform: 'win32' },
  ] as const;

  test('on each platform', async () => {
    const lines = CLIENTS.map((client) =>
      [client.name, ...desks.map((desk) => fileOf(client, desk))].join('\n  '),
    );
    await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot(join(GOLDEN, 'files.txt'));
  });

  test('what tells that a client is installed lies above its file, or in the home directory', () => {
    const [desk] = desks;
    for (const client of CLIENTS) {
      const sign = signOf(client, desk);
      expect(fileOf(client, desk).startsWith(`${sign}/`)).toBe(client.name !== 'claude-code');
      expect(sign).not.toBe(desk.home);
    }
  });
});
