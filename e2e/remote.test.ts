import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { remoteServer, type RemoteServer } from './fixtures/remote-server.ts';
import { testAuthority } from './fixtures/test-authority.ts';
import { openUser, type TestUser } from './skep.ts';

// Servers elsewhere over TLS, called by the official client through a workload; nothing else of this machine is needed.

describe('a server elsewhere', () => {
  let directory: string;
  let ca: string;
  let far: RemoteServer;
  let user: TestUser;

  beforeAll(async () => {
    directory = mkdtempSync(path.join(tmpdir(), 'skep-remote-'));
    const authority = testAuthority(path.join(directory, 'authority'));
    const issued = authority.issue('far', { for: ['DNS:localhost'] });
    ca = path.join(issued, 'ca.pem');
    far = await remoteServer(issued);
    user = openUser({ SKEP_FRONT_PORT: '0', SKEP_SECRETS_PROVIDER: 'environment', SKEP_SECRET_FAR: 'hush' });
  });
  beforeEach(() => {
    far.requests.splice(0);
    far.wanted = undefined;
  });
  afterAll(async () => {
    await user.end();
    await far[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true });
  });

  async function ran(name: string, at: string, ...flags: readonly string[]): Promise<string> {
    const args = ['run', far.origin + at, '--name', name, '--skep-ca-bundle', ca, ...flags];
    const { code, stdout, stderr } = await user.skep(args);
    expect(code, stderr).toBe(0);
    return stdout.trim();
  }

  async function connected(url: string, headers: Record<string, string> = {}): Promise<Client> {
    const client = new Client({ name: 'test', version: '1' });
    const isSse = url.includes('#');
    await client.connect(
      isSse
        ? new SSEClientTransport(new URL(url))
        : new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }),
    );
    return client;
  }

  const told = async (client: Client): Promise<Record<string, string>> => {
    const { content } = (await client.callTool({ name: 'tell' })) as { content: { text: string }[] };
    return JSON.parse(content[0]?.text ?? '') as Record<string, string>;
  };

  const statusOf = async (name: string): Promise<unknown> =>
    JSON.parse((await user.skep(['status', name, '--format', 'json'])).stdout);

  test.each([
    ['far-http', '/v1/mcp?key=a,b', [], '/v1/mcp'],
    ['far-root', '/', [], '/'],
    ['far-sse', '/sse', ['--transport', 'sse'], '/sse#far-sse'],
  ])('%s: official clients call it, before and after a stop', async (name, at, flags, end) => {
    const url = await ran(name, at, ...flags);
    expect(url.endsWith(end), url).toBe(true);
    expect(await statusOf(name)).toMatchObject({
      status: 'running',
      package: 'remote',
      server: { name: 'far' },
    });
    for (const round of ['run', 'start']) {
      const clients = [await connected(url), await connected(url)];
      for (const client of clients) {
        expect((await client.listTools()).tools.map((tool) => tool.name)).toEqual(['tell']);
        await told(client);
        await client.close();
      }
      if (round === 'run') {
        expect(await user.skep(['stop', name])).toMatchObject({ code: 0 });
        await expect(fetch(url)).rejects.toThrow();
        expect(await user.skep(['start', name])).toMatchObject({ code: 0 });
      }
    }
    const asked = new Set(far.requests.map(({ line }) => line.split('?', 1).join('')));
    const path = at.split('?')[0] ?? '';
    for (const line of asked) expect([path, '/messages']).toContain(line.split(' ')[1]);
    expect(await user.skep(['rm', name])).toMatchObject({ code: 0 });
  });

  test('gets the headers of its person, and nothing that clients show; values of secrets are in no file', async () => {
    far.wanted = { header: 'x-key', value: 'hush' };
    const url = await ran('far-headers', '/v1/mcp', '--remote-forward-headers-secret', 'X-Key=FAR', '--remote-forward-headers', 'X-Team=blue'); // prettier-ignore
    const client = await connected(url, { authorization: 'Bearer mine', cookie: 'a=b', 'x-key': 'mine' });
    const headers = await told(client);
    expect(headers).toMatchObject({ 'x-key': 'hush', 'x-team': 'blue' });
    expect(headers).not.toHaveProperty('authorization');
    expect(headers).not.toHaveProperty('cookie');
    await client.close();
    const out = path.join(directory, 'out.json');
    expect(await user.skep(['export', 'far-headers', out])).toMatchObject({ code: 0 });
    const files = user.leftFiles().map((file) => path.join(user.dir, file));
    for (const file of files.filter((one) => statSync(one).isFile()))
      expect(readFileSync(file).includes('hush'), file).toBe(false);
    expect(await user.skep(['rm', 'far-headers'])).toMatchObject({ code: 0 });
    const refused = await user.skep(['run', '--from-config', out]);
    expect(refused.stderr).toContain('which is no public address');
    const again = await user.skep(['run', '--from-config', out, '--trust-config']);
    expect(again.code, again.stderr).toBe(0);
    await told(await connected(again.stdout.trim()));
    expect(await user.skep(['rm', 'far-headers'])).toMatchObject({ code: 0 });
  });

  test('is believed only with a certificate that somebody vouches for', async () => {
    const args = ['run', `${far.origin}/v1/mcp`, '--name', 'far-doubt', '--check-timeout', '2s'];
    const { code, stderr } = await user.skep(args);
    expect(code).toBe(1);
    expect(stderr).toContain('did not answer');
    expect(far.requests).toEqual([]);
    expect((await user.skep(['list', '--all'])).stdout).not.toContain('far-doubt');
  });

  test('that was started anew costs its clients nothing, and so does a killed supervisor but one handshake', async () => {
    const url = await ran('far-restart', '/v1/mcp');
    const client = await connected(url);
    const before = far.calls();
    await told(client);
    await far.restart();
    await Promise.all([told(client), told(client), told(client)]);
    expect(far.calls()).toBe(before + 4);
    const initialized = far.requests.filter(
      ({ line, headers }) => line === 'POST /v1/mcp' && !headers['mcp-session-id'],
    );
    // Whether it wants a sign-in, the check of the start, the client, and the proxy in its place.
    expect(initialized).toHaveLength(4);

    await user.killSupervisor();
    expect(await statusOf('far-restart')).toMatchObject({ status: 'running' });
    await far.restart();
    await expect(client.callTool({ name: 'tell' })).rejects.toMatchObject({
      message: expect.stringContaining('Session not found'),
    });
    await told(await connected(url));
    expect(far.calls()).toBe(before + 5);
    expect(await user.skep(['rm', 'far-restart'])).toMatchObject({ code: 0 });
  });

  test('that wants to know who asks, or does not answer, is told in list and status, until it does', async () => {
    far.wanted = { header: 'x-key', value: 'nobody' };
    const looks = { SKEP_REMOTE_HEALTHCHECKS: 'true', SKEP_HEALTH_CHECK_INTERVAL: '100ms', SKEP_HEALTH_CHECK_RETRY_DELAY: '100ms' }; // prettier-ignore
    const args = ['run', `${far.origin}/v1/mcp`, '--name', 'far-looked-at', '--skep-ca-bundle', ca, '--remote-auth=false']; // prettier-ignore
    const { code, stdout, stderr } = await user.skep(args, { env: looks });
    expect(code, stderr).toBe(0);
    expect(await statusOf('far-looked-at')).toMatchObject({ status: 'unauthenticated' });
    far.wanted = undefined;
    const client = await connected(stdout.trim());
    await expect
      .poll(() => statusOf('far-looked-at'), { timeout: 30_000 })
      .toMatchObject({ status: 'running' });
    await far.away(async () => {
      await expect
        .poll(() => statusOf('far-looked-at'), { timeout: 30_000 })
        .toMatchObject({ status: 'unhealthy', health: 'Health check failed' });
      const health = await fetch(new URL('/health', stdout.trim()));
      expect([health.status, await health.json()]).toMatchObject([503, { mcp: { error: 'ECONNREFUSED' } }]);
    });
    await expect
      .poll(() => statusOf('far-looked-at'), { timeout: 30_000 })
      .toMatchObject({ status: 'running' });
    await told(client);
    expect(await user.skep(['rm', 'far-looked-at'])).toMatchObject({ code: 0 });
  });

  test('of a catalogue is run by its name', async () => {
    const catalogue = path.join(directory, 'catalogue.json');
    const server = { name: 'com.example/far', description: 'Far', version: '1.0.0', remotes: [{ type: 'streamable-http', url: `${far.origin}/v1/mcp` }] }; // prettier-ignore
    const document = {
      version: '1.0.0',
      meta: { last_updated: '2026-01-01T00:00:00Z' },
      data: { servers: [server] },
    };
    writeFileSync(catalogue, JSON.stringify(document));
    expect(await user.skep(['config', 'set-registry', catalogue])).toMatchObject({ code: 0 });
    const refused = await user.skep(['run', 'far', '--skep-ca-bundle', ca]);
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.stderr).toContain('which is no public address');
    expect((await user.skep(['info', 'far'])).stdout).toContain('skep run far');
  });
});
