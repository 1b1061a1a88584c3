import { once } from 'node:events';
import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { INSPECTOR, startInFolder } from './run-inspector.ts';
import { commandUnderTest, type CommandUnderTest } from '../command-under-test.fixture.ts';

/** An `npx` that notes what it is told, and then does what `then` says. */
async function withNpx(skep: CommandUnderTest, then = ''): Promise<{ readonly PATH: string }> {
  const npx = join(skep.home, 'bin', 'npx');
  await mkdir(dirname(npx), { recursive: true });
  const notes = [
    '#!/bin/sh',
    `printf '%s\\n' "$@" > "${skep.home}/argv"`,
    `env > "${skep.home}/env"`,
    'for last; do :; done',
    `cp "$last" "${skep.home}/config"`,
    `stat -c %a "$last" > "${skep.home}/mode"`,
    then,
  ];
  await writeFile(npx, `${notes.join('\n')}\n`);
  await chmod(npx, 0o755);
  return { PATH: `${dirname(npx)}:/usr/bin:/bin` };
}

const noted = (skep: CommandUnderTest, what: string): Promise<string> =>
  readFile(join(skep.home, what), 'utf8');
const filesLeft = async ({ places }: CommandUnderTest): Promise<readonly string[]> =>
  (await readdir(places.stateDir)).filter((name) => name.startsWith('inspector-'));

test('the inspector is run on the address of a workload, and its words are passed on', async () => {
  const skep = await commandUnderTest();
  await skep.output('run fake:1 --name a1 --transport stdio --proxy-port 4777');
  const env = await withNpx(skep, "printf 'up at http://127.0.0.1:6274\\033[2J'; exit 0");
  expect(await skep.output('inspector a1', { env })).toBe('up at http://127.0.0.1:6274\uFFFD[2J\n');
  const [, , what, , file = ''] = (await noted(skep, 'argv')).split('\n');
  expect(what).toMatch(/^@modelcontextprotocol\/inspector@\d+\.\d+\.\d+$/u);
  expect(file.startsWith(skep.places.stateDir)).toBe(true);
  expect(JSON.parse(await noted(skep, 'config'))).toEqual({
    mcpServers: { a1: { type: 'streamable-http', url: 'http://127.0.0.1:4777/mcp' } },
  });
  expect(await noted(skep, 'env')).toMatch(/^MCP_AUTO_OPEN_ENABLED=true$/mu);
  expect(await filesLeft(skep)).toEqual([]);
});

test('no browser is opened where none is wanted, and a server anywhere can be looked at', async () => {
  const skep = await commandUnderTest();
  const env = await withNpx(skep);
  await skep.output('inspector https://mcp.example/sse --no-open', { env });
  expect(await noted(skep, 'env')).toMatch(/^MCP_AUTO_OPEN_ENABLED=false$/mu);
  expect(JSON.parse(await noted(skep, 'config'))).toEqual({
    mcpServers: { 'https://mcp.example/sse': { type: 'sse', url: 'https://mcp.example/sse' } },
  });
});

test('a token is in no argument and no variable, but in a file that nobody else can read', async () => {
  const skep = await commandUnderTest({ files: { token: 'hunter2.token\n' } });
  const oidc = '--oidc-issuer https://idp.example --oidc-audience x';
  await skep.output(`run fake:1 --name a1 --transport stdio ${oidc}`);
  const env = await withNpx(skep);
  await skep.output('inspector a1 --token-file token', { env: { ...env, SKEP_DEBUG: 'false' } });
  expect(`${await noted(skep, 'argv')}${await noted(skep, 'env')}`).not.toMatch(/hunter2|SKEP_/u);
  expect(JSON.parse(await noted(skep, 'config'))).toMatchObject({
    mcpServers: { a1: { headers: { Authorization: 'Bearer hunter2.token' } } },
  });
  expect(await noted(skep, 'mode')).toBe('600\n');
  expect((await stat(skep.places.stateDir)).mode & 0o077).toBe(0);
});

test('the token of the registry is not given to it', async () => {
  const skep = await commandUnderTest();
  const env = { ...(await withNpx(skep)), SKEP_TOKEN_FILE: await skep.write('token', 'of-the-registry') };
  await skep.output('inspector https://mcp.example/mcp', { env });
  expect(await noted(skep, 'config')).not.toContain('of-the-registry');
});

test('it is of the version that Skep is tested with', async () => {
  const { devDependencies } = JSON.parse(
    await readFile(join(import.meta.dirname, '../../../../package.json'), 'utf8'),
  );
  const [name = ''] = INSPECTOR.split(/(?<=.)@/u);
  expect(INSPECTOR).toBe(`${name}@${devDependencies[name]}`);
});

test('Ctrl-C ends it and all that it has started', async () => {
  const skep = await commandUnderTest();
  const env = await withNpx(skep, 'sleep 600 & echo up; wait');
  const ending = new AbortController();
  const running = skep.run('inspector http://127.0.0.1:1/mcp', {
    env,
    signal: ending.signal,
    onOut: () => ending.abort(),
  });
  await expect.poll(() => skep.ended, { timeout: 20_000 }).toMatchObject([{ how: 'SIGTERM' }]);
  for (const { pid } of skep.ended) process.kill(pid, 'SIGTERM');
  await running;
  expect(await filesLeft(skep)).toEqual([]);
});

test('it ends with the command, however that ends, and its folder goes with it', async () => {
  const skep = await commandUnderTest();
  const folder = join(skep.home, 'inspector');
  await mkdir(folder);
  const env = { PATH: '/usr/bin:/bin' };
  const child = startInFolder(folder, ['sh', '-c', 'sleep 600 & echo up; wait'], env);
  await once(child.stdout, 'data');
  // The system closes it when the command is killed.
  child.stdin.destroy();
  await once(child, 'close');
  expect(child.signalCode).toBe('SIGKILL');
  await expect(stat(folder)).rejects.toMatchObject({ code: 'ENOENT' });
});

test('what a command that was killed has left goes with the next one', async () => {
  const skep = await commandUnderTest();
  const left = ['inspector-4194303-1-abcdef', 'inspector-abcdef'];
  for (const name of left) await mkdir(join(skep.places.stateDir, name), { recursive: true });
  const env = await withNpx(skep);
  await skep.output('inspector http://127.0.0.1:1/mcp', { env });
  expect(await filesLeft(skep)).toEqual([]);
});

test('what keeps it from running is told', async () => {
  const skep = await commandUnderTest();
  expect(await skep.refusal('inspector http://127.0.0.1:1/mcp', { env: { PATH: '/nowhere' } })).toContain(
    'install Node.js',
  );
  const env = await withNpx(skep, 'echo "PORT IS IN USE" >&2; exit 3');
  const said = await skep.refusal('inspector http://127.0.0.1:1/mcp', { env });
  expect(said).toContain('PORT IS IN USE');
  expect(said).toContain('the MCP Inspector ended with a failure');
});
