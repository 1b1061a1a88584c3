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

const SSE = 'http://h/sse';
const AS_SSE = { type: 'sse', url: SSE };
const NO_WORD = { url: SSE };

/** The entry of a server that speaks SSE. */
const OF_SSE: Readonly<Record<string, object>> = {
  'amp-cli': AS_SSE,
  antigravity: { serverUrl: SSE },
  'claude-code': AS_SSE,
  cline: AS_SSE,
  codex: NO_WORD,
  continue: { name: 'x', ...AS_SSE },
  'copilot-cli': { ...AS_SSE, tools: ['*'] },
  cursor: AS_SSE,
  factory: AS_SSE,
  'gemini-cli': NO_WORD,
  goose: { name: 'x', type: 'sse', uri: SSE, enabled: true, timeout: 60, description: '' },
  'kimi-cli': NO_WORD,
  kiro: NO_WORD,
  'lm-studio': AS_SSE,
  'mistral-vibe': { name: 'x', transport: 'http', url: SSE },
  opencode: { type: 'remote', url: SSE, enabled: true },
  qoder: AS_SSE,
  'roo-code': AS_SSE,
  trae: NO_WORD,
  vscode: AS_SSE,
  'vscode-insider': AS_SSE,
  'vscode-server': NO_WORD,
  windsurf: { type: 'sse', serverUrl: SSE },
  'windsurf-jetbrains': { type: 'sse', serverUrl: SSE },
  zed: NO_WORD,
};

test.each(CLIENTS.map((client) => [client.name, client] as const))(
  '%s is told in its own words of a server that speaks SSE',
  (name, client) => {
    expect(entryFor(client, 'x', { url: SSE, mode: 'sse' })).toEqual(OF_SSE[name]);
  },
);

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
