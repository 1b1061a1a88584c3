import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { firstUncovered } from '@skep/auth/claims/covers.ts';
import { authenticate, type Authentication } from '@skep/auth/resource/authenticate.ts';
import { TokenCache } from '@skep/auth/token/cache.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { createProvider, type ProviderSettings } from '@skep/auth/token/provider.ts';
import { createVerifier, type TokenVerifier } from '@skep/auth/token/verifier.ts';
import { silentLog } from '@skep/core/log/log.ts';
import {
  AUDIENCE,
  type IdentityProvider,
  startIdentityProvider,
  type TokenHeader,
} from '../fixtures/identity-provider.ts';

// Signing in against a real OpenID provider over real sockets: what packages/auth does without the programs around it.

const folder = mkdtempSync(path.join(os.tmpdir(), 'skep-identity-'));
let idp: IdentityProvider;

beforeAll(async () => {
  idp = await startIdentityProvider();
});
afterAll(async () => {
  await idp.stop();
  rmSync(folder, { recursive: true });
});

function settings(of: IdentityProvider, changes: Partial<ProviderSettings> = {}): ProviderSettings {
  return {
    name: 'test',
    issuerUrl: of.issuer,
    allowPrivateIP: true,
    plainHttp: 'loopback',
    rules: { audience: AUDIENCE, leewayS: 5, subject: 'optional' },
    issuerMatch: 'exact',
    forcedRefreshEveryMs: 60_000,
    ...changes,
  };
}

async function verifierFor(...all: readonly ProviderSettings[]): Promise<TokenVerifier> {
  const services = { clock: systemClock, random: Math.random, log: silentLog };
  const providers = await Promise.all(all.map((one) => createProvider(one, services)));
  const cache = new TokenCache({ now: Date.now, capMs: 60_000, maxCharacters: 1_000_000 });
  const verifier = createVerifier(providers, cache);
  onTestFinished(() => verifier.close());
  return verifier;
}

async function statusOf(token: string, verifier: TokenVerifier): Promise<string> {
  const answer: Authentication = await authenticate([`Bearer ${token}`], verifier);
  if (answer.kind === 'refused') return `401 ${answer.reason}`;
  return answer.kind === 'unavailable' ? `503 after ${answer.retryAfterSeconds} s` : '200';
}

const soon = (): number => Math.floor(Date.now() / 1_000) + 300;

describe('an issued token', () => {
  test('is accepted with the claims it was issued with', async () => {
    const verifier = await verifierFor(settings(idp));
    const claims = { org: 'acme', team: ['platform', 'data'], role: 'writer' };
    const answer = await authenticate([`Bearer ${await idp.token({ ...claims, sub: 'bob' })}`], verifier);
    expect(answer).toMatchObject({
      kind: 'identity',
      identity: { subject: 'bob', issuer: idp.issuer, claims },
    });
    const held = answer.kind === 'identity' ? answer.identity.claims : {};
    expect(firstUncovered(held, { org: 'acme', team: 'data' }, 'all')).toBeUndefined();
  });

  test('is checked once while it is cached', async () => {
    const verifier = await verifierFor(settings(idp));
    const token = await idp.token({});
    expect(await statusOf(token, verifier)).toBe('200');
    const asked = idp.requests.length;
    for (let request = 0; request < 20; request += 1) expect(await statusOf(token, verifier)).toBe('200');
    expect(idp.requests).toHaveLength(asked);
  });

  test('for another audience is refused', async () => {
    const token = await idp.token({}, { audience: 'someone-else' });
    expect(await statusOf(token, await verifierFor(settings(idp)))).toBe('401 wrong-audience');
  });

  test.each(['jwt', 'opaque'] as const)('as %s is accepted by one of two providers', async (format) => {
    const second = await startIdentityProvider();
    onTestFinished(() => second.stop());
    const verifier = await verifierFor(
      settings(idp, { name: 'first', ...introspection(idp) }),
      settings(second, { name: 'second', ...introspection(second) }),
    );
    for (const issuer of [idp, second]) {
      expect(await statusOf(await issuer.token({}, { format }), verifier)).toBe('200');
    }
  });
});

function introspection(of: IdentityProvider): Partial<ProviderSettings> {
  const { url, clientId, clientSecret } = of.introspection;
  return { introspectionUrl: url, clientId, clientSecret };
}

describe('a hostile token under the real key', () => {
  test.each<[string, () => Record<string, unknown>, TokenHeader, string]>([
    ['expired', () => ({ exp: soon() - 301 }), {}, '401 expired'],
    ['without expiry', () => ({}), {}, '401 no-expiry'],
    ['of tomorrow', () => ({ exp: soon() + 90_000, nbf: soon() + 86_400 }), {}, '401 not-yet-valid'],
    ['of another issuer', () => ({ exp: soon(), iss: 'https://evil.test' }), {}, '401 wrong-issuer'],
    ['with an unknown key id', () => ({ exp: soon() }), { kid: 'made-up' }, '401 unknown-key'],
    ['without key id', () => ({ exp: soon() }), { kid: undefined }, '401 no-key-id'],
    ['with nothing wrong', () => ({ exp: soon() }), {}, '200'],
  ])('%s', async (_name, claims, header, expected) => {
    const token = await idp.sign(claims(), header);
    expect(await statusOf(token, await verifierFor(settings(idp)))).toBe(expected);
  });

  test('cut anywhere is refused', async () => {
    const verifier = await verifierFor(settings(idp));
    const token = await idp.token({});
    for (const length of [1, 20, token.indexOf('.') + 1, token.lastIndexOf('.'), token.length - 1]) {
      expect(await statusOf(token.slice(0, length), verifier)).toMatch(/^401 /u);
    }
  });

  test('with its signature removed and alg none is refused', async () => {
    const [, payload] = (await idp.token({})).split('.');
    const header = Buffer.from('{"alg":"none","kid":"key-1"}').toString('base64url');
    expect(await statusOf(`${header}.${payload}.`, await verifierFor(settings(idp)))).toBe(
      '401 algorithm-refused',
    );
  });
});

describe('key rotation', () => {
  test('a token under a new key works at once, one under a withdrawn key no longer', async () => {
    const rotating = await startIdentityProvider();
    onTestFinished(() => rotating.stop());
    const verifier = await verifierFor(settings(rotating));
    const [before, unused] = [await rotating.token({ n: 1 }), await rotating.token({ n: 2 })];
    expect(await statusOf(before, verifier)).toBe('200');
    await rotating.rotate('drop');
    expect(await statusOf(await rotating.token({ n: 3 }), verifier)).toBe('200');
    // The keys were asked for a moment ago, so nobody can say yet; it is not let in either way.
    expect(await statusOf(unused, verifier)).toMatch(/^503 after [1-9]\d? s$/u);
  });

  test('both keys work while both are published', async () => {
    const rotating = await startIdentityProvider();
    onTestFinished(() => rotating.stop());
    const verifier = await verifierFor(settings(rotating));
    const before = await rotating.token({ n: 1 });
    await rotating.rotate('keep');
    expect(await statusOf(await rotating.token({ n: 2 }), verifier)).toBe('200');
    expect(await statusOf(before, verifier)).toBe('200');
  });
});

describe('an opaque token', () => {
  test('is introspected and keeps its own claims', async () => {
    const verifier = await verifierFor(settings(idp, introspection(idp)));
    const token = await idp.token({ org: 'acme', team: ['a', 'b'] }, { format: 'opaque' });
    const answer = await authenticate([`Bearer ${token}`], verifier);
    expect(answer).toMatchObject({
      kind: 'identity',
      identity: { claims: { org: 'acme', team: ['a', 'b'] } },
    });
  });

  test('with the endpoint from the metadata and the secret from a file', async () => {
    const file = path.join(folder, 'secret');
    writeFileSync(file, `${idp.introspection.clientSecret}\n`);
    const changes = {
      introspection: 'discover',
      clientId: idp.introspection.clientId,
      clientSecretFile: file,
    } as const;
    const verifier = await verifierFor(settings(idp, changes));
    expect(await statusOf(await idp.token({}, { format: 'opaque' }), verifier)).toBe('200');
  });

  test.each(['unknown', 'a.b.c', 'x'.repeat(16_384)])('that nobody issued is refused', async (token) => {
    expect(await statusOf(token, await verifierFor(settings(idp, introspection(idp))))).toBe('401 inactive');
  });

  test('is neither good nor bad where our own credentials are refused', async () => {
    const wrong = { ...introspection(idp), clientSecret: 'wrong' };
    expect(await statusOf('unknown', await verifierFor(settings(idp, wrong)))).toBe('503 after 10 s');
  });
});

describe('an outage of the provider', () => {
  test('is 503 before keys were ever read, and over when the provider is back', async () => {
    const away = await startIdentityProvider();
    onTestFinished(() => away.stop());
    const verifier = await verifierFor(settings(away, introspection(away)));
    const [token, opaque] = [await away.token({}), await away.token({}, { format: 'opaque' })];
    await away.stop();
    expect(await statusOf(token, verifier)).toBe('503 after 10 s');
    expect(await statusOf(opaque, verifier)).toBe('503 after 10 s');
    await away.start();
    expect(await statusOf(token, verifier)).toBe('200');
  });

  test('does not hurt tokens under known keys, nor another provider', async () => {
    const away = await startIdentityProvider();
    onTestFinished(() => away.stop());
    const verifier = await verifierFor(settings(away), settings(idp));
    const [first, second] = [await away.token({ n: 1 }), await away.token({ n: 2 })];
    expect(await statusOf(first, verifier)).toBe('200');
    await away.stop();
    expect(await statusOf(second, verifier)).toBe('200');
    expect(await statusOf(await idp.token({}), verifier)).toBe('200');
  });
});

test('a provider that accepts connections and never answers is 503 in less than ten seconds', async () => {
  const silent = net.createServer();
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    silent.close();
  });
  const address = silent.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const issuerUrl = `http://127.0.0.1:${port}`;
  const verifier = await verifierFor(settings(idp, { issuerUrl }));
  const started = Date.now();
  expect(await statusOf(await idp.sign({ exp: soon(), iss: issuerUrl }), verifier)).toBe('503 after 10 s');
  expect(Date.now() - started).toBeLessThan(10_000);
});

describe('how the provider is reached', () => {
  test('a loopback address is refused unless private addresses are allowed', async () => {
    const verifier = await verifierFor(settings(idp, { allowPrivateIP: false }));
    const asked = idp.requests.length;
    expect(await statusOf(await idp.sign({ exp: soon() }), verifier)).toBe('503 after 10 s');
    expect(idp.requests).toHaveLength(asked);
  });

  test('the token file is sent with metadata and keys, and read anew each time', async () => {
    const guarded = await startIdentityProvider({ metadataAuthorization: 'Bearer second' });
    onTestFinished(() => guarded.stop());
    const file = path.join(folder, 'token');
    writeFileSync(file, 'first\n');
    const verifier = await verifierFor(settings(guarded, { authTokenFile: file }));
    const token = await guarded.token({});
    expect(await statusOf(token, verifier)).toBe('503 after 10 s');
    writeFileSync(file, 'second\n');
    expect(await statusOf(token, verifier)).toBe('200');
  });

  const openssl = spawnSync('openssl', ['version']).status === 0;

  test.skipIf(!openssl)('over TLS with an authority of its own [needs openssl]', async () => {
    const tls = selfSigned();
    const secure = await startIdentityProvider({ tls });
    onTestFinished(() => secure.stop());
    const token = await secure.token({});
    const caCertPath = path.join(folder, 'cert.pem');
    expect(await statusOf(token, await verifierFor(settings(secure)))).toBe('503 after 10 s');
    expect(await statusOf(token, await verifierFor(settings(secure, { caCertPath })))).toBe('200');
  });

  test('a bundle without a certificate stops the start', async () => {
    const caCertPath = path.join(folder, 'empty.pem');
    writeFileSync(caCertPath, 'nothing\n');
    await expect(verifierFor(settings(idp, { caCertPath }))).rejects.toThrow(
      expect.objectContaining({ code: 'fetch/ca-bundle' }),
    );
  });
});

function selfSigned(): { key: string; cert: string } {
  const [key, cert] = [path.join(folder, 'key.pem'), path.join(folder, 'cert.pem')];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
  const files = ['-keyout', key, '-out', cert, '-days', '1'];
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', ...files, ...subject], {
    stdio: 'ignore',
  });
  return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') };
}
