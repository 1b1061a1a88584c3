import { createServer } from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { listen } from '@skep/core/fetch/listen.ts';
import { InitializeRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { describe, expect, test } from 'vitest';
import type { SignInTarget } from './port.ts';
import { probe } from './probe.ts';
import { servicesWith, startScripted } from './world.fixture.ts';

const at = (origin: string): Pick<SignInTarget, 'resource' | 'mayBePrivate'> => ({
  resource: `${origin}/mcp`,
  mayBePrivate: { resource: true, issuer: false },
});

describe('whether a server demands a sign-in', () => {
  test('its first 401 counts, to GET or to initialize, with all its challenges', async () => {
    await using server = await startScripted();
    await using services = servicesWith();
    const challenges = ['Basic realm="a"', 'Bearer scope="b"'];
    server.on.set('POST /mcp', () => ({ status: 401, headers: { 'www-authenticate': challenges } }));
    const demand = await probe(at(server.origin), services);
    expect(demand).toEqual({ kind: 'sign-in', challenge: challenges.join(', ') });
    expect(server.asked.map(({ method }) => method)).toEqual(['GET', 'POST']);
    expect(InitializeRequestSchema.safeParse(JSON.parse(server.asked[1]?.body ?? '')).success).toBe(true);
    server.on.set('GET /mcp', () => ({ status: 401 }));
    expect(await probe(at(server.origin), services)).toEqual({ kind: 'sign-in', challenge: undefined });
  });

  test('one that lets everybody in keeps no session of the question', async () => {
    await using server = await startScripted();
    await using services = servicesWith();
    server.on.set('POST /mcp', () => ({ headers: { 'mcp-session-id': 'one' }, body: {} }));
    server.on.set('DELETE /mcp', () => ({ status: 204 }));
    expect(await probe(at(server.origin), services)).toEqual({ kind: 'none' });
    expect(server.of('DELETE /mcp')[0]?.headers['mcp-session-id']).toBe('one');
  });

  test.each(['one', undefined])(
    'one that lets everybody begin, and wants a token for more, is heard (session: %s)',
    async (id) => {
      await using server = await startScripted();
      await using services = servicesWith();
      server.on.set('POST /mcp', ({ body }) =>
        body.includes('tools/list')
          ? { status: 401, headers: { 'www-authenticate': 'Bearer scope="b"' } }
          : { headers: id === undefined ? {} : { 'mcp-session-id': id }, body: {} },
      );
      const demand = await probe(at(server.origin), services);
      expect(demand).toEqual({ kind: 'sign-in', challenge: 'Bearer scope="b"' });
      const [, list] = server.of('POST /mcp');
      expect(list?.headers['mcp-session-id']).toBe(id);
      expect(server.of('DELETE /mcp')).toHaveLength(id === undefined ? 0 : 1);
    },
  );

  test.each<[number, object | undefined, string]>([
    [400, {}, 'sign-in'],
    [403, {}, 'sign-in'],
    [404, {}, 'none'],
    [500, {}, 'none'],
    [200, {}, 'none'],
    [400, undefined, 'none'],
    [400, { resource: 'http://localhost:1/other' }, 'unknown'],
    [400, { authorization_servers: [] }, 'none'],
  ])('one that answers %i to all, with metadata %o, demands: %s', async (status, members, kind) => {
    await using server = await startScripted();
    await using services = servicesWith();
    server.on.set('POST /mcp', () => ({ status, body: {} }));
    const document = { resource: `${server.origin}/mcp`, authorization_servers: [server.origin], ...members };
    if (members !== undefined)
      server.on.set('GET /.well-known/oauth-protected-resource/mcp', () => ({ body: document }));
    expect(await probe(at(server.origin), services)).toMatchObject({ kind });
  });

  test.each([{ sessionIdGenerator: () => 'one' }, {}])(
    'an open one of the official SDK is signed in to by nobody, though it has metadata (%o)',
    async (how) => {
      await using services = servicesWith();
      const seen: string[] = [];
      const transport = new StreamableHTTPServerTransport(how);
      const own = new McpServer({ name: 'open', version: '1' });
      await own.connect(transport);
      const server = createServer((request, response) => {
        seen.push(`${request.method ?? ''} ${request.url ?? ''}`);
        if (request.url === '/mcp') void transport.handleRequest(request, response);
        else
          response
            .setHeader('content-type', 'application/json')
            .end(JSON.stringify({ resource: `${origin}/mcp`, authorization_servers: [origin] }));
      });
      const origin = `http://localhost:${await listen(server, '127.0.0.1', 0)}`;
      expect(await probe(at(origin), services)).toEqual({ kind: 'none' });
      expect(new Set(seen.map((line) => line.split(' ')[1]))).toEqual(new Set(['/mcp']));
      await own.close();
      server.closeAllConnections();
      server.close();
    },
  );

  test('a stream that never ends is an answer', async () => {
    await using server = await startScripted();
    await using services = servicesWith();
    server.on.set('GET /mcp', () => ({
      headers: { 'content-type': 'text/event-stream', 'content-length': '9' },
    }));
    server.on.set('POST /mcp', () => ({ status: 401 }));
    expect(await probe(at(server.origin), services)).toMatchObject({ kind: 'sign-in' });
  });

  test('redirects are followed on its own host alone, and what goes wrong is told', async () => {
    await using server = await startScripted();
    await using other = await startScripted();
    await using services = servicesWith();
    server.on.set('GET /mcp', () => ({ status: 307, headers: { location: '/new' } }));
    server.on.set('GET /new', () => ({ status: 401 }));
    expect(await probe(at(server.origin), services)).toMatchObject({ kind: 'sign-in' });
    server.on.set('GET /mcp', () => ({ status: 307, headers: { location: `${other.origin}/mcp` } }));
    other.on.set('GET /mcp', () => ({ status: 401 }));
    expect(await probe(at(server.origin), services)).toMatchObject({
      kind: 'unknown',
      reason: expect.stringContaining('another host'),
    });
    server.on.set('GET /mcp', () => ({ status: 302, headers: { location: '/mcp' } }));
    expect(await probe(at(server.origin), services)).toMatchObject({
      kind: 'unknown',
      reason: expect.stringContaining('too often'),
    });
    expect(await probe(at('http://localhost:1'), services)).toMatchObject({ kind: 'unknown' });
    expect(other.asked).toEqual([]);
  });

  test.each<[string, object]>([
    ['Basic realm="a"', { kind: 'other', schemes: ['basic'] }],
    ['Digest realm="a", nonce="b", Basic realm="c"', { kind: 'other', schemes: ['digest', 'basic'] }],
    ['Basic realm="a", Bearer', { kind: 'sign-in', challenge: 'Basic realm="a", Bearer' }],
    [',;"', { kind: 'sign-in', challenge: undefined }],
  ])('one that asks for %s demands %o', async (header, demand) => {
    await using server = await startScripted();
    await using services = servicesWith();
    server.on.set('GET /mcp', () => ({ status: 401, headers: { 'www-authenticate': header } }));
    expect(await probe(at(server.origin), services)).toEqual(demand);
  });
});
