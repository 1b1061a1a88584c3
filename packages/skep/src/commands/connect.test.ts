import { chmod, lstat, mkdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { systemClock, type Clock } from '@skep/core/time/clock.ts';
import { describe, expect, test } from 'vitest';
import {
  commandUnderTest,
  ctrlC,
  type CommandUnderTest,
  type MachineUnderTest,
} from '../command-under-test.fixture.ts';
import { RESTART } from '../supervisor/watch.ts';
import { writeFrontDoor } from '../supervisor/front-state.ts';
import { CLIENTS, fileOf, signOf } from '../clients/table.ts';

const CURSOR = '.cursor/mcp.json';
const ONE = `{
  // mine
  "mcpServers": {
    "other": { "command": "npx", "env": { "TOKEN": "hush" } }
  }
}
`;

async function put(skep: CommandUnderTest, path: string, text: string): Promise<string> {
  const absolute = join(skep.home, path);
  await mkdir(dirname(absolute), { recursive: true });
  await writeFile(absolute, text);
  return absolute;
}

const read = (skep: CommandUnderTest, path = CURSOR): Promise<string> =>
  readFile(join(skep.home, path), 'utf8');

async function serversOf(skep: CommandUnderTest): Promise<Record<string, unknown>> {
  const text = (await read(skep)).replaceAll(/^\s*\/\/.*$/gm, '');
  return (JSON.parse(text) as { mcpServers: Record<string, unknown> }).mcpServers;
}

const urlOf = async (skep: CommandUnderTest, name: string): Promise<string> =>
  (JSON.parse(await skep.output(`status ${name} --format json`)) as { url: string }).url;

/** Without a front door: URLs are those of the workloads. */
const NO_DOOR = { env: { SKEP_FRONT_PORT: '0' } };

async function withCursor(text = ONE, machine: MachineUnderTest = NO_DOOR): Promise<CommandUnderTest> {
  const skep = await commandUnderTest(machine);
  await put(skep, CURSOR, text);
  await skep.output('run fake:1 --name notes');
  return skep;
}

describe('skep connect', () => {
  test('shows the difference without what stands around it, and writes it', async () => {
    const skep = await withCursor();
    const { status, out, err } = await skep.run('connect cursor');
    expect(status).toBe(0);
    expect(out).toBe('cursor\n');
    const url = await urlOf(skep, 'notes');
    expect(err).toBe(
      `~/.cursor/mcp.json\n@ line 5\n+     "notes": {\n+       "type": "http",\n+       "url": "${url}"\n+     }\n  Cursor has notes (~/.cursor/mcp.json)\n`,
    );
    expect(await read(skep)).toBe(
      ONE.replace(
        '} }\n  }',
        `} },\n    "notes": {\n      "type": "http",\n      "url": "${url}"\n    }\n  }`,
      ),
    );
    expect((await stat(join(skep.home, CURSOR))).mode & 0o777).toBe(0o644);
  });

  test('changes nothing the second time, not even the time of the file', async () => {
    const skep = await withCursor();
    await skep.output('connect cursor');
    const before = await stat(join(skep.home, CURSOR), { bigint: true });
    expect((await skep.run('connect cursor')).err).toBe('  Cursor has notes (~/.cursor/mcp.json)\n');
    expect((await stat(join(skep.home, CURSOR), { bigint: true })).mtimeNs).toBe(before.mtimeNs);
  });

  test('asks on a terminal; a no and Ctrl-C change nothing', async () => {
    const skep = await withCursor();
    const { status, err } = await skep.run('connect cursor', { agrees: false });
    expect([status, err]).toEqual([1, expect.stringContaining('nothing was changed')]);
    expect(skep.asked).toEqual(['Write this to ~/.cursor/mcp.json?']);
    const { signal, press } = ctrlC();
    press();
    expect((await skep.run('connect cursor', { signal, agrees: true })).status).toBe(1);
    expect(await read(skep)).toBe(ONE);
    expect(await skep.output('client list-registered')).toBe('No clients are registered\n');
    await skep.output('connect cursor', { agrees: true });
    expect(Object.keys(await serversOf(skep))).toEqual(['other', 'notes']);
  });

  test('asks nobody with --yes, and writes nothing with --dry-run', async () => {
    const skep = await withCursor();
    expect((await skep.run('connect cursor --dry-run', { agrees: true })).err).toContain('+     "notes": {');
    expect(await read(skep)).toBe(ONE);
    await skep.output('connect cursor --yes', { agrees: false });
    expect(skep.asked).toEqual([]);
    expect(Object.keys(await serversOf(skep))).toEqual(['other', 'notes']);
  });

  test('keeps a client up to date with its group', async () => {
    const skep = await withCursor();
    await skep.output('connect cursor');
    await skep.output('run fake:1 --name later');
    expect(Object.keys(await serversOf(skep))).toEqual(['other', 'notes', 'later']);
    await skep.output('stop notes');
    expect(Object.keys(await serversOf(skep))).toEqual(['other', 'later']);
    await skep.output('start notes');
    expect(Object.keys(await serversOf(skep))).toEqual(['other', 'later', 'notes']);
    await skep.output('rm notes later');
    expect(await read(skep)).toBe(ONE);
  });

  test('takes a server away that has ended, until it was started again', async () => {
    const due = Promise.withResolvers<void>();
    const clock: Clock = {
      ...systemClock,
      sleep: (ms, signal) => (ms === RESTART.firstDelayMs ? due.promise : systemClock.sleep(ms, signal)),
    };
    const skep = await withCursor(ONE, { ...NO_DOOR, clock });
    await skep.output('connect cursor');
    skep.runtime.end('notes', 1);
    await expect.poll(() => serversOf(skep), { timeout: 9_000 }).not.toHaveProperty('notes');
    due.resolve();
    await expect.poll(() => serversOf(skep), { timeout: 9_000 }).toHaveProperty('notes');
  });

  test('leaves a workload of another group out, and takes several groups', async () => {
    const skep = await withCursor();
    await skep.output('group create team');
    await skep.output('run fake:1 --name theirs --group team');
    await skep.output('connect cursor');
    expect(Object.keys(await serversOf(skep))).toEqual(['other', 'notes']);
    await skep.output('connect cursor --group team,default');
    expect(Object.keys(await serversOf(skep))).toEqual(['other', 'notes', 'theirs']);
    await skep.output('disconnect cursor --group default');
    expect(Object.keys(await serversOf(skep))).toEqual(['other', 'theirs']);
    await skep.output('client register cursor --group default,team');
    expect(await skep.output('client list-registered')).toMatch(/^cursor +default, team /m);
    await skep.output('client remove cursor');
    expect(await read(skep)).toBe(ONE);
    expect(await skep.refusal('connect cursor --group absent')).toContain("group 'absent' does not exist");
  });

  test('with a name means that workload alone, also before it runs', async () => {
    const skep = await withCursor();
    await skep.output('run fake:1 --name second');
    await skep.output('stop second');
    expect((await skep.run('connect cursor second')).err).toContain(
      '"second" does not run; it is written when it starts',
    );
    await skep.output('run fake:1 --name third');
    await skep.output('start second');
    expect(Object.keys(await serversOf(skep))).toEqual(['other', 'second']);
    await skep.output('disconnect cursor second');
    expect(await read(skep)).toBe(ONE);
    await skep.output('stop second');
    await skep.output('start second');
    expect(await read(skep)).toBe(ONE);
  });

  test('writes commands with --stdio, and remembers it', async () => {
    const skep = await withCursor();
    await skep.output('connect cursor --stdio');
    const command = (name: string): unknown => ({
      type: 'stdio',
      command: 'skep',
      args: ['proxy', 'stdio', name],
    });
    expect((await serversOf(skep))['notes']).toEqual(command('notes'));
    await skep.output('run fake:1 --name later');
    expect((await serversOf(skep))['later']).toEqual(command('later'));
    await skep.output('connect cursor --stdio=false');
    expect((await serversOf(skep))['later']).toEqual({ type: 'http', url: await urlOf(skep, 'later') });
  });

  test('leaves an entry of that name alone that it did not write, and takes its own back', async () => {
    const skep = await withCursor('{"mcpServers": {"notes": {"url": "http://elsewhere/mcp"}}}');
    const { out, err } = await skep.run('connect cursor');
    expect(out).toBe('cursor\n');
    expect(err).toContain(
      'Warning: an entry "notes" in ~/.cursor/mcp.json was not written by Skep and is left alone',
    );
    await skep.output('disconnect cursor');
    expect(await read(skep)).toBe('{"mcpServers": {"notes": {"url": "http://elsewhere/mcp"}}}');
    // Written by hand, but it leads here.
    await put(
      skep,
      CURSOR,
      `{"mcpServers": {"notes": {"url": "${await urlOf(skep, 'notes')}", "disabled": true}}}`,
    );
    await skep.output('connect cursor');
    expect((await serversOf(skep))['notes']).toEqual({
      type: 'http',
      url: await urlOf(skep, 'notes'),
      disabled: true,
    });
  });

  test('what the person changed of an entry so that it leads elsewhere is theirs', async () => {
    const skep = await withCursor();
    await skep.output('connect cursor');
    await put(skep, CURSOR, '{"mcpServers": {"notes": {"url": "http://elsewhere/mcp"}}}');
    await skep.output('stop notes');
    expect(await read(skep)).toBe('{"mcpServers": {"notes": {"url": "http://elsewhere/mcp"}}}');
  });

  test('makes a missing file, mode 0600, and removes it in the end', async () => {
    const skep = await commandUnderTest(NO_DOOR);
    await mkdir(join(skep.home, '.cursor'));
    await skep.output('run fake:1 --name notes');
    await skep.output('connect cursor');
    expect((await stat(join(skep.home, CURSOR))).mode & 0o777).toBe(0o600);
    await skep.output('disconnect cursor');
    await expect(stat(join(skep.home, CURSOR))).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test('follows a link, and keeps it', async () => {
    const skep = await withCursor();
    await put(skep, 'dotfiles/mcp.json', ONE);
    await rm(join(skep.home, CURSOR));
    await symlink('../dotfiles/mcp.json', join(skep.home, CURSOR));
    await skep.output('connect cursor');
    expect((await lstat(join(skep.home, CURSOR))).isSymbolicLink()).toBe(true);
    expect(await read(skep, 'dotfiles/mcp.json')).toContain('"notes"');
  });

  test.each([
    ['{"mcpServers": []}', 'in it is not what it should be'],
    ['{"mcpServers": {', 'it is not valid JSON at line 1'],
    ['[1]', 'it does not hold an object'],
    ['{"a": 1, "a": 2}', 'a name stands in it twice'],
  ])('leaves %j alone, in one line', async (text, why) => {
    const skep = await withCursor(text);
    const said = await skep.refusal('connect cursor');
    expect(said).toContain(`${CURSOR}" is left alone: `);
    expect(said).toContain(why);
    expect(said.trimEnd().split('\n')).toHaveLength(1);
    expect(await read(skep)).toBe(text);
    expect(await skep.output('client list-registered')).toBe('No clients are registered\n');
  });

  test('leaves a folder, a pipe of a link, what is no UTF-8 and a huge file alone', async () => {
    const skep = await withCursor();
    const path = join(skep.home, CURSOR);
    await writeFile(path, Buffer.from([0x7b, 0xff, 0x7d]));
    expect(await skep.refusal('connect cursor')).toContain('it is not UTF-8 text');
    await writeFile(path, Buffer.alloc(33 * 1024 * 1024, 32));
    expect(await skep.refusal('connect cursor')).toContain('it is too large');
    await rm(path);
    await mkdir(path);
    expect(await skep.refusal('connect cursor')).toContain('it is not a regular file');
    await rm(path, { recursive: true });
    await symlink('nowhere', path);
    expect(await skep.refusal('connect cursor')).toContain('it is a link to nothing');
    await rm(path);
    await symlink('/dev/null', path);
    expect(await skep.refusal('connect cursor')).toContain('it is not a regular file');
  });

  test.skipIf(process.getuid?.() === 0)('leaves what may not be written alone', async () => {
    const skep = await withCursor();
    await chmod(join(skep.home, CURSOR), 0o444);
    expect(await skep.refusal('connect cursor')).toContain('it may not be written');
  });

  test('a file that is left alone does not keep a workload from running, nor other clients from being written', async () => {
    const skep = await withCursor();
    await put(skep, '.kiro/settings/mcp.json', '{');
    const { status, err } = await skep.run('connect --all');
    expect([status, err]).toEqual([1, expect.stringContaining('mcp.json" is left alone')]);
    expect(Object.keys(await serversOf(skep))).toEqual(['other', 'notes']);
    await put(skep, CURSOR, 'broken');
    expect((await skep.run('run fake:1 --name later')).status).toBe(0);
    expect(await read(skep)).toBe('broken');
  });

  test.each([
    ['connect', 'missing argument CLIENT'],
    ['connect cursr', 'invalid client type: cursr (valid types: amp-cli, antigravity, claude-code'],
    ['connect zed', 'Zed is not installed'],
    ['connect cursor absent', 'workload "absent" not found'],
    ['connect cursor ../x', 'invalid workload name'],
    ['connect cursor notes --group default', 'cannot specify both a workload name and --group'],
  ])('%s is refused', async (line, why) => {
    const skep = await withCursor();
    expect(await skep.refusal(line)).toContain(why);
  });

  test('a workload that comes with its group is not taken out by name', async () => {
    const skep = await withCursor();
    await skep.output('connect cursor');
    expect(await skep.refusal('disconnect cursor notes')).toContain(
      `Cursor has "notes" because it has the group 'default'`,
    );
  });
});

describe('the front door', () => {
  const say = (skep: CommandUnderTest, is: 'open' | 'closed', why?: string): Promise<void> =>
    writeFrontDoor(skep.places, {
      is,
      port: 4243,
      ...(why !== undefined && { why }),
      pid: process.pid,
      started: 'command',
      state: realpathSync(skep.places.stateDir),
    });

  test('is what is written, now and by the supervisor', async () => {
    const skep = await withCursor(ONE, {});
    await say(skep, 'open');
    await skep.output('connect cursor');
    await skep.output('run fake:1 --name later');
    expect(await serversOf(skep)).toMatchObject({
      notes: { url: 'http://127.0.0.1:4243/notes/mcp' },
      later: { url: 'http://127.0.0.1:4243/later/mcp' },
    });
    expect(await skep.output('list --format zed')).toContain('http://127.0.0.1:4243/notes/mcp');
  });

  test('is written later for what came while it was closed', async () => {
    const skep = await withCursor(ONE, {});
    await say(skep, 'open');
    await skep.output('connect cursor');
    await say(skep, 'closed', 'port 4243 is taken by "other"');
    await skep.output('run fake:1 --name later');
    await skep.output('run fake:1 --name ended');
    await skep.output('stop ended');
    expect(await serversOf(skep)).not.toHaveProperty('later');
    await say(skep, 'open');
    await skep.frontDoorOpened();
    const servers = await serversOf(skep);
    expect(servers).toMatchObject({ later: { url: 'http://127.0.0.1:4243/later/mcp' } });
    expect(servers).not.toHaveProperty('ended');
  });

  test('takes over from the address that a workload had', async () => {
    const skep = await withCursor(ONE, {});
    await skep.output('connect cursor', { env: { SKEP_FRONT_PORT: '0' } });
    expect(await serversOf(skep)).toMatchObject({ notes: { url: await urlOf(skep, 'notes') } });
    await say(skep, 'open');
    await skep.output('connect cursor');
    expect(await serversOf(skep)).toMatchObject({ notes: { url: 'http://127.0.0.1:4243/notes/mcp' } });
  });

  test('has to be open, but for commands', async () => {
    const skep = await withCursor(ONE, {});
    await say(skep, 'closed', 'port 4243 is taken by "other"');
    const said = await skep.refusal('connect cursor');
    expect(said).toContain('port 4243 is taken by "other"');
    expect(said.trimEnd().split('\n')).toHaveLength(1);
    expect(await read(skep)).toBe(ONE);
    await skep.output('connect cursor --stdio');
    expect((await serversOf(skep))['notes']).toMatchObject({ command: 'skep' });
  });
});

test('a client whose policies compare names with a registry gets the name of the registry', async () => {
  const skep = await commandUnderTest(NO_DOOR);
  const desk = { home: skep.home, platform: 'linux' } as const;
  await skep.output('run fake:1 --name notes');
  await skep.output('run fake:1 --name again');
  for (const name of ['notes', 'again']) {
    const path = join(skep.places.runConfigsDir, `${name}.json`);
    const config = JSON.parse(await readFile(path, 'utf8')) as object;
    await writeFile(path, JSON.stringify({ ...config, registry_server_name: 'io.example/notes' }));
  }
  const named = CLIENTS.filter(({ name }) => name === 'vscode' || name === 'claude-code');
  for (const client of named) await mkdir(signOf(client, desk), { recursive: true });
  await skep.output('connect --all');
  const keys = await Promise.all(
    named.map(async (client) => {
      const root = JSON.parse(await readFile(fileOf(client, desk), 'utf8')) as Record<string, object>;
      return Object.keys(root[client.key] ?? {});
    }),
  );
  expect(keys).toEqual([
    ['again', 'notes'],
    // Of two from one entry, one can have its name.
    ['io.example/notes', 'notes'],
  ]);
  expect(await skep.output('list --format vscode')).toContain('"io.example/notes"');
});

describe('skep client', () => {
  test('shows the state of every client', async () => {
    const skep = await withCursor();
    const table = await skep.output('client status');
    expect(table.split('\n')).toHaveLength(CLIENTS.length + 2);
    expect(table).toMatch(/^CLIENT +INSTALLED +CONNECTED +FILE\n/);
    expect(table).toMatch(/^cursor +yes +no +~\/\.cursor\/mcp\.json$/m);
    await skep.output('client register cursor');
    expect(await skep.output('client status')).toMatch(/^cursor +yes +yes/m);
    expect(await skep.output('client list-registered')).toMatch(/^cursor +default +notes$/m);
    await skep.output('client remove cursor');
    expect(await read(skep)).toBe(ONE);
  });

  test('setup asks for each installed client', async () => {
    const skep = await withCursor();
    await put(skep, '.kiro/settings/mcp.json', '{}\n');
    expect(await skep.refusal('client setup')).toContain('there is no terminal to ask at');
    await skep.output('client setup', { agrees: true });
    expect(skep.asked).toEqual([
      'Connect Cursor (~/.cursor/mcp.json)?',
      'Connect Kiro (~/.kiro/settings/mcp.json)?',
      'Write this to ~/.cursor/mcp.json?',
      'Write this to ~/.kiro/settings/mcp.json?',
    ]);
    expect((await skep.run('client setup', { agrees: true })).err).toBe(
      'Every installed client is connected already\n',
    );
  });

  test('every client is connected and disconnected, and its file is gone again', async () => {
    const skep = await commandUnderTest(NO_DOOR);
    await skep.output('run fake:1 --name notes');
    const desk = { home: skep.home, platform: 'linux' } as const;
    for (const client of CLIENTS) await mkdir(signOf(client, desk), { recursive: true });
    const out = await skep.output('connect --all');
    expect(out.trim().split('\n')).toEqual(CLIENTS.map(({ name }) => name));
    const url = await urlOf(skep, 'notes');
    for (const client of CLIENTS) {
      const text = await readFile(fileOf(client, desk), 'utf8');
      expect(text).toContain(url);
      // What list prints for the client is what its file holds.
      expect(await skep.output(`list --format ${client.name}`)).toBe(text);
    }
    await skep.output('disconnect --all');
    for (const client of CLIENTS)
      await expect(stat(fileOf(client, desk))).rejects.toMatchObject({ code: 'ENOENT' });
    expect(await skep.output('client list-registered')).toBe('No clients are registered\n');
  });
});

test('a server whose group goes leaves the clients of that group, and comes to those of default', async () => {
  const skep = await commandUnderTest(NO_DOOR);
  await put(skep, CURSOR, ONE);
  await put(skep, '.codeium/windsurf/mcp_config.json', '{}\n');
  await skep.output('group create team');
  await skep.output('run fake:1 --name notes --group team');
  await skep.output('connect cursor --group team --yes');
  await skep.output('connect windsurf --group default --yes');
  expect(await serversOf(skep)).toHaveProperty('notes');
  await skep.output('group rm team');
  expect(await serversOf(skep)).not.toHaveProperty('notes');
  expect(await read(skep, '.codeium/windsurf/mcp_config.json')).toContain('"notes"');
});
