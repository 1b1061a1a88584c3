import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from './fixtures/free-port.ts';
import { component, title } from './require.ts';
import { openUser, type TestUser } from './skep.ts';

// What a client finds in its own file leads to a server that answers, for as long as there is one.

const npm = await component('npm');
const sandbox = await component('sandbox');

const CURSOR = '.cursor/mcp.json';
const CODEX = '.codex/config.toml';
const BEFORE = '{\n  // mine\n  "mcpServers": {\n    "other": { "command": "npx" } // too\n  }\n}\n';

describe.skipIf(!sandbox.available || !npm.available)(title('a connected client', sandbox, npm), () => {
  const name = `everything-${randomBytes(3).toString('hex')}`;
  let user: TestUser;

  beforeAll(async () => {
    user = openUser({ SKEP_RUNTIME: 'sandbox', SKEP_FRONT_PORT: String(await freePort()) });
    for (const file of [CURSOR, CODEX]) mkdirSync(path.dirname(at(file)));
    writeFileSync(at(CURSOR), BEFORE);
  });
  afterAll(() => user.end());

  const at = (file: string): string => path.join(user.dir, file);

  async function ok(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await user.skep(args);
    expect(code, stderr).toBe(0);
    return stdout;
  }

  /** Where the file of Codex says that the server is. */
  function urlInFile(): string {
    const text = readFileSync(at(CODEX), 'utf8');
    return new RegExp(`^\\[mcp_servers\\.${name}\\]\nurl = "(.+)"$`, 'm').exec(text)?.[1] ?? '';
  }

  async function sum(url: string): Promise<unknown> {
    const client = new Client({ name: 'connect', version: '1' });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    try {
      return (await client.callTool({ name: 'get-sum', arguments: { a: 19, b: 23 } })).content;
    } finally {
      await client.close();
    }
  }

  test('has the server while it runs, at one address', async () => {
    await ok('run', '--name', name, 'everything');
    expect(await ok('connect', '--all')).toBe('codex\ncursor\n');
    const url = urlInFile();
    expect(url).toBe(`http://127.0.0.1:${user.env.SKEP_FRONT_PORT}/${name}/mcp`);
    expect(readFileSync(at(CURSOR), 'utf8')).toContain(`"url": "${url}"`);
    const answer = [{ type: 'text', text: 'The sum of 19 and 23 is 42.' }];
    expect(await sum(url)).toEqual(answer);

    await ok('stop', name);
    expect(existsSync(at(CODEX))).toBe(false);
    expect(readFileSync(at(CURSOR), 'utf8')).toBe(BEFORE);

    await ok('start', name);
    expect(urlInFile()).toBe(url);
    expect(await sum(urlInFile())).toEqual(answer);

    await user.killSupervisor();
    await ok('list');
    expect(urlInFile()).toBe(url);

    await ok('rm', name);
    expect(existsSync(at(CODEX))).toBe(false);
    expect(readFileSync(at(CURSOR), 'utf8')).toBe(BEFORE);
    await ok('disconnect', '--all');
  });
});
