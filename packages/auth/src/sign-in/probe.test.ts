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
    expect(JSON.parse(server.asked[1]?.body ?? '')).toMatchObject({ method: 'initialize' });
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

  test('a stream that never ends is an answer', async () => {
    await using server = await startScripted();
    await using services = servicesWith();
    server.on.set('GET /mcp', () => ({
      headers: { 'content-type': 'text/event-stream', 'content-length': '9' },
    }));
    server.on.set('POST /mcp', () => ({ status: 401 }));
    expect(await probe(at(server.origin), services)).toMatchObject({ kind: 'sign-in' });
  });

  test('redirects are followed on its own host alone, and what goes wrong demands nothing', async () => {
    await using server = await startScripted();
    await using other = await startScripted();
    await using services = servicesWith();
    server.on.set('GET /mcp', () => ({ status: 307, headers: { location: '/new' } }));
    server.on.set('GET /new', () => ({ status: 401 }));
    expect(await probe(at(server.origin), services)).toMatchObject({ kind: 'sign-in' });
    server.on.set('GET /mcp', () => ({ status: 307, headers: { location: `${other.origin}/mcp` } }));
    other.on.set('GET /mcp', () => ({ status: 401 }));
    expect(await probe(at(server.origin), services)).toEqual({ kind: 'none' });
    server.on.set('GET /mcp', () => ({ status: 302, headers: { location: '/mcp' } }));
    expect(await probe(at(server.origin), services)).toEqual({ kind: 'none' });
    expect(await probe(at('http://localhost:1'), services)).toEqual({ kind: 'none' });
    expect(other.asked).toEqual([]);
  });
});
