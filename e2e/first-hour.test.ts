import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { blocksOf } from './page-blocks.ts';
import { component, repoRoot, title } from './require.ts';
import { freePort } from './fixtures/free-port.ts';
import { ended, filesIn, killSupervisors, machineNpmSettings, passedOn } from './skep.ts';

// The first hour of somebody who has npm, and no container engine: what the README says, in its order, from what it has
// installed, in a home where nothing was before.

const bundle = process.env['SKEP_TEST_BUNDLE'] ?? path.join(repoRoot, 'dist');
const readme = await blocksOf('README.md');
const needed = [await component('npm'), await component('sandbox')];

const OWN = `{
  "theme": "dark",
  "mcpServers": {
    "own": { "type": "http", "url": "https://mcp.example.com/" }
  }
}
`;

let home: string;
let env: Record<string, string>;

/** What a test that ran out of time has left: npm goes on for ever where its folder is taken from under it. */
const running = new Set<ChildProcess>();

/** Both streams of a line of the page, as a person sees them. Fails when the line does. */
async function shell(line: string): Promise<string> {
  const child = spawn('sh', ['-c', line], {
    cwd: home,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  running.add(child);
  const { code, stdout, stderr } = await ended(child);
  running.delete(child);
  expect(code, `${line}\n${stdout}${stderr}`).toBe(0);
  return `${stdout}${stderr}`;
}

/** The lines of a block of the page, without what is said beside them. */
const linesOf = (holding: string): string[] =>
  readme('sh', holding)
    .split('\n')
    .map((line) => line.replace(/\s+#.*$/, ''))
    .filter((line) => line !== '');

/** Calls a tool of the server at the address that is in the client's own file. */
async function callFromClient(tool: string, args: Record<string, unknown>): Promise<string> {
  const { mcpServers } = JSON.parse(readFileSync(path.join(home, '.claude.json'), 'utf8')) as {
    mcpServers: Record<string, { url: string }>;
  };
  const client = new Client({ name: 'first-hour', version: '1' });
  try {
    await client.connect(new StreamableHTTPClientTransport(new URL(mcpServers['memory']?.url ?? '')));
    return JSON.stringify(await client.callTool({ name: tool, arguments: args }));
  } finally {
    await client.close();
  }
}

beforeAll(async () => {
  home = mkdtempSync(path.join(tmpdir(), 'skep-first-hour-'));
  const prefix = path.join(home, 'npm');
  env = {
    HOME: home,
    PATH: [path.join(prefix, 'bin'), path.dirname(process.execPath), process.env['PATH']].join(':'),
    // As it is without being set; the supervisor is found by it.
    XDG_STATE_HOME: path.join(home, '.local/state'),
    npm_config_prefix: prefix,
    npm_config_cache: path.join(home, 'npm-cache'),
    ...machineNpmSettings(),
    ...passedOn('NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE'),
    // There is no engine, and another Skep of this machine may have the usual address.
    SKEP_RUNTIME: 'sandbox',
    SKEP_FRONT_PORT: String(await freePort()),
  };
  // Stands for the checkout, in which the line before has built these.
  symlinkSync(bundle, path.join(home, 'dist'));
  // The client is there, and has something of its own.
  mkdirSync(path.join(home, '.claude'));
  writeFileSync(path.join(home, '.claude.json'), OWN);
});

afterAll(async () => {
  for (const child of running) {
    // A group of its own: the shell does not hand on what ends it.
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGTERM');
    await ended(child);
  }
  await shell('! command -v skep >/dev/null || skep rm --all --data --yes');
  await killSupervisors(path.join(home, '.local/state'));
  rmSync(home, { recursive: true, force: true });
});

test.skipIf(needed.some((one) => !one.available))(
  title('from an empty home to a tool in the own client, and everything is still there tomorrow', ...needed),
  async () => {
    await shell(
      readme('sh', 'npm install --global')
        .split('\n')
        .find((line) => line.startsWith('npm install')) ?? '',
    );

    const [search = '', run = '', connect = ''] = linesOf('skep connect');
    expect(await shell(search)).toMatch(/memory/);
    const ran = await shell(run);
    expect(ran).toMatch(/✓ memory is running .*: \d+ tools, ~[\d.]+ k tokens/);
    expect(ran).toMatch(/Reads:.*\n.*Writes:/);
    const connected = await shell(connect);
    const address = `http://127.0.0.1:${env['SKEP_FRONT_PORT']}/memory/mcp`;
    expect(connected).toContain(address);

    const ada = { name: 'Ada', entityType: 'person', observations: ['keeps bees'] };
    expect(await callFromClient('create_entities', { entities: [ada] })).toContain('keeps bees');

    const [stop = '', start = '', upgrade = '', rm = ''] = linesOf('skep upgrade');
    await shell(stop);
    await shell(start);
    expect(await callFromClient('read_graph', {})).toContain('keeps bees');
    await shell(upgrade);
    expect(await callFromClient('read_graph', {})).toContain('keeps bees');
    expect(await shell(rm)).toContain('memory');
    expect(readFileSync(path.join(home, '.claude.json'), 'utf8')).toBe(OWN);
    // Its data has stayed, and the same name finds it at the same address.
    expect(await shell(run)).toContain(address);
    expect(await callFromClient('read_graph', {})).toContain('keeps bees');
    await shell('skep rm memory --data');
    expect(await shell(run)).toContain(address);
    expect(await callFromClient('read_graph', {})).not.toContain('keeps bees');

    await shell('skep rm --all --data --yes');
    expect(filesIn(home).filter((file) => /(?:^|\/)skep\/.*memory/.test(file))).toEqual([]);
  },
  // A busy machine fetches and installs for minutes.
  300_000,
);
