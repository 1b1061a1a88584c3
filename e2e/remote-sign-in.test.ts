import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { ChildProcess } from 'node:child_process';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { freePort } from './fixtures/free-port.ts';
import { guardedServer, type GuardedServer } from './fixtures/guarded-server.ts';
import {
  OWN_CLIENT,
  SCOPES,
  type SignInProvider,
  type SignInProviderOptions,
  startSignInProvider,
} from './fixtures/sign-in-provider.ts';
import { standInBrowser, visit } from './fixtures/stand-in-browser.ts';
import { allProcesses } from './processes.ts';
import {
  ended,
  filesIn,
  killSupervisors,
  openUser,
  printed,
  type SkepResult,
  type TestUser,
} from './skep.ts';

// The packed program, a real identity provider and a remote MCP server that is a protected resource.

const NAME = 'notes';
const PASSWORD = 'correct horse battery staple';
const ROUNDS = 10;

let far: GuardedServer;
let idp: SignInProvider;
let user: TestUser;
let browser: { readonly program: string; readonly visits: string };
let port: number;
let folder: string;
/** Of another supervisor of the user. */
let elsewhere: { readonly XDG_STATE_HOME: string } | undefined;

beforeEach(async () => {
  far = await guardedServer(SCOPES);
  folder = mkdtempSync(path.join(tmpdir(), 'skep-remote-sign-in-'));
  const password = path.join(folder, 'password');
  writeFileSync(password, PASSWORD, { mode: 0o600 });
  user = openUser({ SKEP_SECRETS_PROVIDER: 'encrypted', SKEP_SECRETS_PASSWORD_FILE: password });
  browser = standInBrowser(folder);
  port = await freePort();
});

afterEach(async () => {
  if (elsewhere !== undefined) {
    await user.skep(['rm', '--all'], { env: elsewhere });
    await killSupervisors(elsewhere.XDG_STATE_HOME);
    elsewhere = undefined;
  }
  await user.end();
  await far[Symbol.asyncDispose]();
  await idp.stop();
  rmSync(folder, { recursive: true });
});

async function guardedBy(options: Omit<SignInProviderOptions, 'resource'>): Promise<void> {
  idp = await startSignInProvider({ ...options, resource: () => far.url });
  far.guard = idp;
}

/** `skep run` of the server; a person with a browser, unless `env` says otherwise. */
function run(flags: readonly string[] = [], env: Record<string, string> = { BROWSER: browser.program }) {
  const callback = ['--remote-auth-callback-port', `${port}`];
  return user.skep(['run', far.url, '--name', NAME, ...callback, ...flags], { env });
}

async function ran(...given: Parameters<typeof run>): Promise<string> {
  const { code, stdout, stderr } = await run(...given);
  expect(code, stderr).toBe(0);
  return stdout.trim();
}

async function connected(url: string): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return client;
}

async function counted(url: string): Promise<string> {
  const client = await connected(url);
  const { content } = (await client.callTool({ name: 'count' })) as { content: { text: string }[] };
  await client.close();
  return content[0]?.text ?? '';
}

const status = async (): Promise<string> => {
  const { stdout } = await user.skep(['status', NAME, '--format', 'json']);
  return (JSON.parse(stdout) as { status: string }).status;
};

const opened = (): number => readFileSync(browser.visits, 'utf8').split('\n').length - 1;

/** Every file of this user. */
function files(): readonly string[] {
  return filesIn(user.dir)
    .map((name) => path.join(user.dir, name))
    .filter((file) => statSync(file, { throwIfNoEntry: false })?.isFile());
}

/** An `initialize` outside the SDK. */
async function initialize(url: string): Promise<Response> {
  const info = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } };
  return fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: info }),
  });
}

test.each<[string, Omit<SignInProviderOptions, 'resource'>]>([
  ['registers public clients, and wants to know what tokens are for', { registers: true }],
  ['knows one client alone, which has a secret', { registers: false }],
  ['does not rotate its refresh tokens', { registers: true, keepsRefreshTokens: true }],
  ['gives tokens that have to be asked about', { registers: true, opaque: true }],
  ['knows no resource indicators', { registers: true, indicators: false }],
])('a provider that %s is signed in to once, refreshed, and known after a start', async (_name, options) => {
  await guardedBy(options);
  idp.tokenLifeMs = 1_000;
  const own = ['--remote-auth-client-id', OWN_CLIENT.id, '--remote-auth-client-secret', OWN_CLIENT.secret];
  const url = await ran(options.registers ? [] : own);
  const refreshes = async (): Promise<number> => counted(url).then(() => idp.refreshes().done);
  await expect.poll(refreshes, { timeout: 20_000 }).toBeGreaterThan(1);
  await user.killSupervisor();
  await user.skep(['start', NAME]);
  const before = idp.refreshes().done;
  await expect.poll(refreshes, { timeout: 20_000 }).toBeGreaterThan(before);
  expect(idp.refreshes().refused).toBe(0);
  expect(opened()).toBe(1);
  const kept = idp.requests.filter((line) => line === 'POST /reg').length;
  expect(kept).toBe(options.registers ? 1 : 0);
});

describe('a server that gives registered clients secrets that end', () => {
  test('goes on being used: the secret is renewed before it ends, and nobody signs in again', async () => {
    await guardedBy({ registers: true, secretLifeS: 3 });
    idp.tokenLifeMs = 1_000;
    const renewals = (): number => idp.requests.filter((line) => line.startsWith('PUT /reg/')).length;
    const url = await ran(['--debug']);
    const call = async (): Promise<number> => counted(url).then(renewals);
    await expect.poll(call, { timeout: 30_000 }).toBeGreaterThan(4);
    await user.killSupervisor();
    await user.skep(['start', NAME]);
    const before = renewals();
    await expect.poll(call, { timeout: 30_000 }).toBeGreaterThan(before + 1);
    expect(idp.refreshes().refused).toBe(0);
    expect(await status()).toBe('running');
    expect(opened()).toBe(1);
    const logs = files().map((file) => readFileSync(file, 'latin1'));
    for (const secret of idp.given) expect(logs.some((text) => text.includes(secret))).toBe(false);
  }, 90_000);
});

describe('a server that clients sign in to with a client that registers itself', () => {
  beforeEach(() => guardedBy({ registers: true }));

  test('is signed in to by running it, and stays so without a browser', async () => {
    const url = await ran();
    expect(opened()).toBe(1);
    expect(await counted(url)).toBe('1');
    expect(await counted(url)).toBe('2');
    expect((await user.skep(['mcp', 'call', NAME, 'count'])).stdout).toContain('3');
    expect((await user.skep(['auth', 'status'])).stdout).toMatch(/notes +127\.0\.0\.1:\d+ +signed in/u);
    await user.killSupervisor();
    expect(await counted((await user.skep(['start', NAME])).stdout.trim() || url)).toBe('4');
    await user.skep(['stop', NAME]);
    await user.skep(['start', NAME]);
    expect(await counted(url)).toBe('5');
    expect(opened()).toBe(1);
    expect(idp.requests.filter((line) => line === 'POST /reg')).toHaveLength(1);
  });

  test('has its secrets in the sealed file, and nowhere else', async () => {
    idp.tokenLifeMs = 1_000;
    const url = await ran(['--debug']);
    await expect
      .poll(() => counted(url).then(() => idp.refreshes().done), { timeout: 20_000 })
      .toBeGreaterThan(1);
    const secrets = [...idp.given, ...far.shown].filter((secret) => secret.length > 8);
    expect(secrets.length).toBeGreaterThan(6);
    await user.skep(['export', NAME, path.join(user.dir, 'out.json')]);
    const said = await Promise.all(
      [['list', '--format', 'json'], ['status', NAME], ['auth', 'status', '--format', 'json'], ['logs', NAME, '--proxy']].map(
        async (args) => (await user.skep(args)).stdout,
      ),
    ); // prettier-ignore
    const texts = new Map(files().map((file) => [file, readFileSync(file, 'latin1')]));
    expect([...texts.keys()].some((file) => file.endsWith('secrets_encrypted'))).toBe(true);
    const everywhere = [
      ...texts,
      ['what commands say', said.join('\n')],
      ['processes', allProcesses()],
    ] as const;
    for (const [where, text] of everywhere)
      for (const secret of secrets) expect(text.includes(secret), where).toBe(false);
    expect((await user.skep(['rm', NAME])).code).toBe(0);
    expect((await user.skep(['secret', 'list', '--system'])).stdout).toContain('No secrets');
  });

  test('is refreshed once for fifty calls at the end of its token, and no refresh token is used twice', async () => {
    idp.tokenLifeMs = 2_000;
    const url = await ran();
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    await client.callTool({ name: 'count' });
    idp.tokenLifeMs = 300_000;
    const before = idp.refreshes().done;
    const end = Date.now() + 2_000;
    await expect.poll(() => Date.now(), { timeout: 5_000 }).toBeGreaterThan(end);
    const calls = Array.from({ length: 50 }, () => client.callTool({ name: 'count' }));
    await Promise.all(calls);
    expect(idp.refreshes()).toEqual({ done: before + 1, refused: 0 });
    expect(far.calls()).toBe(51);
    await client.close();
  });

  test('keeps its rotating refresh token beside that of another supervisor in one store', async () => {
    const other = path.join(user.dir, 'state-too');
    const env = { XDG_STATE_HOME: other, BROWSER: browser.program };
    elsewhere = env;
    idp.tokenLifeMs = 1_000;
    const first = await ran();
    const started = await user.skep(
      ['run', far.url, '--name', 'papers', '--remote-auth-callback-port', `${port}`],
      { env },
    );
    expect(started.code, started.stderr).toBe(0);
    const clients = await Promise.all([first, started.stdout.trim()].map(connected));
    // Both begin at the moment when the tokens of both have to be new.
    for (let round = 1; round <= ROUNDS; round += 1) {
      const before = far.shown.size;
      await vi.waitUntil(
        async () => {
          await Promise.all(clients.map((client) => client.callTool({ name: 'count' })));
          return far.shown.size > before + 1;
        },
        { timeout: 10_000, interval: 20 },
      );
    }
    expect(idp.refreshes().refused).toBe(0);
    expect(idp.refreshes().done).toBeGreaterThanOrEqual(2 * ROUNDS);
    await Promise.all(clients.map((client) => client.close()));
    // What each has in memory is not what it kept.
    await user.killSupervisor();
    await killSupervisors(other);
    await user.skep(['start', NAME]);
    await user.skep(['start', 'papers'], { env });
    await counted(first);
    await counted(started.stdout.trim());
    expect(idp.refreshes().refused).toBe(0);
    expect(opened()).toBe(2);
  }, 180_000);

  test('that forgets who signed in is told in list and status, and a login mends it', async () => {
    idp.tokenLifeMs = 1_000;
    const url = await ran();
    idp.forget();
    await expect.poll(async () => (await initialize(url)).status, { timeout: 20_000 }).toBe(503);
    const refused = await initialize(url);
    expect(refused.headers.get('www-authenticate')).toBeNull();
    expect(await refused.text()).toContain(`not signed in to the server: skep auth login ${NAME}`);
    // It is written down behind the answer; a busy disk takes its time.
    await expect.poll(status, { timeout: 20_000 }).toBe('unauthenticated');
    expect((await user.skep(['status', NAME])).stdout).toContain(`skep auth login ${NAME}`);
    expect((await user.skep(['auth', 'status', NAME])).stdout).toContain('ended');
    expect(opened()).toBe(1);
    idp.tokenLifeMs = 300_000;
    const login = await user.skep(['auth', 'login', NAME], { env: { BROWSER: browser.program } });
    expect(login.code, login.stderr).toBe(0);
    expect(login.stdout).toContain('Signed in to 127.0.0.1');
    await counted(url);
    await expect.poll(status, { timeout: 20_000 }).toBe('running');
  });

  test('is waited for while its provider is away, and calls fail fast', async () => {
    idp.tokenLifeMs = 1_000;
    const patience = {
      SKEP_TOKEN_REFRESH_INITIAL_RETRY_INTERVAL: '100ms',
      SKEP_TOKEN_REFRESH_MAX_RETRY_INTERVAL: '100ms',
      SKEP_TOKEN_REFRESH_MAX_TRIES: '2',
      SKEP_TOKEN_AUTH_RETRYING_TICK_INTERVAL: '300ms',
    };
    const url = await ran([], { BROWSER: browser.program, ...patience });
    await idp.away(async () => {
      await expect.poll(async () => (await initialize(url)).status, { timeout: 20_000 }).toBe(503);
      expect((await initialize(url)).headers.get('retry-after')).toBe('10');
      await expect.poll(status, { timeout: 20_000 }).toBe('auth_retrying');
      expect((await user.skep(['list'])).stdout).toContain('auth_retrying');
      idp.tokenLifeMs = 300_000;
    });
    await expect.poll(status, { timeout: 20_000 }).toBe('running');
    await counted(url);
    expect(opened()).toBe(1);
  });

  test('is signed out of, and its workload asks for a login from then on', async () => {
    const url = await ran();
    const out = await user.skep(['auth', 'logout', NAME]);
    expect(out.code, out.stderr).toBe(0);
    expect(idp.requests.filter((line) => line === 'POST /token/revocation').length).toBeGreaterThan(0);
    expect((await initialize(url)).status).toBe(503);
    await expect.poll(status, { timeout: 20_000 }).toBe('unauthenticated');
    expect((await user.skep(['auth', 'logout', NAME])).stdout).toContain('Nobody was signed in');
    await user.skep(['stop', NAME]);
    const started = await user.skep(['start', NAME], { env: { BROWSER: browser.program } });
    expect(started.code, started.stderr).toBe(0);
    expect(started.stderr).toContain(`nobody is signed in to the server: skep auth login ${NAME}`);
    expect(await status()).toBe('unauthenticated');
    expect(opened()).toBe(1);
  });

  test('is run in the foreground by who signs in', async () => {
    const args = ['run', far.url, '--name', NAME, '--foreground', '--remote-auth-callback-port', `${port}`];
    const held = user.start(args, { env: { BROWSER: browser.program } });
    const said = await printed(held, 'Press Ctrl-C');
    await counted(/http:\S+/u.exec(said.slice(said.indexOf('Signed in')))?.[0] ?? '');
    const over = ended(held);
    held.kill('SIGINT');
    await over;
    expect((await user.skep(['secret', 'list', '--system'])).stdout).toContain('No secrets');
  });

  test.each([
    ['nobody comes in time', ['--remote-auth-timeout', '1s'], undefined],
    ['the person presses Ctrl-C', [], 'SIGINT'],
  ] as const)('leaves nothing where %s', async (_how, flags, signal) => {
    const args = ['run', far.url, '--name', NAME, '--remote-auth-skip-browser', '--remote-auth-callback-port', `${port}`, ...flags]; // prettier-ignore
    const held: ChildProcess = user.start(args);
    const over: Promise<SkepResult> = ended(held);
    await printed(held, '/auth?');
    if (signal) held.kill(signal);
    const { code, stderr } = await over;
    expect(code).not.toBe(0);
    if (!signal) expect(stderr).toContain('--remote-auth-timeout gives more time');
    expect((await user.skep(['list', '--all'])).stdout).not.toContain(NAME);
    expect((await user.skep(['secret', 'list', '--system'])).stdout).toContain('No secrets');
    expect(opened()).toBe(0);
  });

  test('is signed in to though it reads no document about the client that is given', async () => {
    const { code, stdout, stderr } = await run(['--remote-auth-client-id', 'https://skep.test/client.json']);
    expect([code, stderr]).toEqual([0, expect.stringContaining('so Skep registered one there')]);
    expect(await counted(stdout.trim())).toBe('1');
    expect(idp.requests.filter((line) => line === 'POST /reg')).toHaveLength(1);
  });

  test('is signed in to at an address that is printed, where no browser is to be opened', async () => {
    const args = ['run', far.url, '--name', NAME, '--remote-auth-skip-browser', '--remote-auth-callback-port', `${port}`]; // prettier-ignore
    const held = user.start(args, { env: { BROWSER: browser.program } });
    const over = ended(held);
    const address = /http:\/\/\S+\/auth\?\S+/u.exec(await printed(held, '/auth?'))?.[0] ?? '';
    await visit(address);
    const { code, stdout, stderr } = await over;
    expect(code, stderr).toBe(0);
    expect(await counted(stdout.trim())).toBe('1');
    expect(opened()).toBe(0);
  });

  test('is signed in to with a code on a machine without a browser', async () => {
    const held = user.start(['run', far.url, '--name', NAME]);
    const over = ended(held);
    const said = await printed(held, 'which holds the code');
    await visit(/http:\S+user_code=\S+/u.exec(said)?.[0] ?? '');
    const { code, stdout, stderr } = await over;
    expect(code, stderr).toBe(0);
    expect(await counted(stdout.trim())).toBe('1');
  });
});

describe('a server whose clients are registered by hand', () => {
  beforeEach(() => guardedBy({ registers: false, opaque: true, indicators: false }));
  const client = ['--remote-auth-client-id', OWN_CLIENT.id];

  test('says that it needs one', async () => {
    const { code, stderr } = await run();
    expect(code).toBe(1);
    expect(stderr).toContain('--remote-auth-client-id');
    expect((await user.skep(['list', '--all'])).stdout).not.toContain(NAME);
  });

  test('is signed in to with its secret, which only the sealed file has, and exported without', async () => {
    const url = await ran(['--remote-auth-issuer', idp.issuer, ...client, '--remote-auth-client-secret', OWN_CLIENT.secret]); // prettier-ignore
    expect(await counted(url)).toBe('1');
    const out = path.join(user.dir, 'out.json');
    await user.skep(['export', NAME, out]);
    const secrets = [OWN_CLIENT.secret, encodeURIComponent(OWN_CLIENT.secret), ...far.shown];
    for (const file of files())
      for (const secret of secrets) expect(readFileSync(file, 'latin1').includes(secret), file).toBe(false);
    expect(JSON.parse(readFileSync(out, 'utf8')).remote_auth_config).toEqual({
      issuer: idp.issuer,
      client_id: OWN_CLIENT.id,
      callback_port: port,
    });
    await user.skep(['rm', NAME]);
    const again = await user.skep(['run', '--from-config', out, '--trust-config'], {
      env: { BROWSER: browser.program, SKEP_SECRET_SKEP_REMOTE_AUTH_CLIENT_SECRET: OWN_CLIENT.secret },
    });
    expect(again.code, again.stderr).toBe(0);
    expect(await counted(again.stdout.trim())).toBe('2');
  });

  test('is signed in to at endpoints that are named, and by a service without a person', async () => {
    const secret = path.join(folder, 'client-secret');
    writeFileSync(secret, `${OWN_CLIENT.secret}\n`);
    const ends = ['--remote-auth-authorize-url', `${idp.issuer}/auth`, '--remote-auth-token-url', `${idp.issuer}/token`]; // prettier-ignore
    const url = await ran([...ends, ...client, '--remote-auth-client-secret-file', secret]);
    expect(await counted(url)).toBe('1');
    const login = await user.skep(['auth', 'login', '--client-credentials', NAME]);
    expect(login.code, login.stderr).toBe(0);
    expect(await counted(url)).toBe('2');
    expect(opened()).toBe(1);
  });

  test('that wants more than the token allows passes that on, and the next login asks for it', async () => {
    const url = await ran([...client, '--remote-auth-client-secret', OWN_CLIENT.secret, '--remote-auth-scopes', 'notes.read']); // prettier-ignore
    far.wants = 'notes.write';
    const refused = await initialize(url);
    expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([403, null]);
    const { stdout } = await user.skep(['logs', NAME, '--proxy']);
    expect(stdout).toContain(`skep auth login ${NAME} asks for it`);
    far.wants = undefined;
    const login = await user.skep(['auth', 'login', NAME], { env: { BROWSER: browser.program } });
    expect(login.code, login.stderr).toBe(0);
    const { stdout: told } = await user.skep(['auth', 'status', NAME, '--format', 'json']);
    expect(JSON.parse(told)[0].scopes).toEqual(expect.arrayContaining(['notes.read', 'notes.write']));
  });

  test('is shown a bearer token that somebody gives, and nobody signs in', async () => {
    far.guard = { issuer: idp.issuer, isGood: async (token) => token === 'given-token-hunter2' };
    const url = await ran(['--remote-auth-bearer-token', 'given-token-hunter2']);
    expect(await counted(url)).toBe('1');
    expect(opened()).toBe(0);
    expect(idp.requests).toEqual([]);
    for (const file of files()) expect(readFileSync(file, 'latin1')).not.toContain('hunter2');
    far.guard = { issuer: idp.issuer, isGood: async () => false };
    const refused = await initialize(url);
    expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([401, null]);
    await expect.poll(status, { timeout: 20_000 }).toBe('unauthenticated');
  });
});
