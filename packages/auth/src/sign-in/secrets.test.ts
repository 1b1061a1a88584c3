import { generateKeyPairSync } from 'node:crypto';
import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import type { Log } from '@skep/core/log/log.ts';
import { createSignInFetch } from './sign-in-fetch.ts';
import { memoryStore } from './memory-store.fixture.ts';
import type { KeptSignIn, SignInTarget, SignInWay } from './port.ts';
import { signIn } from './sign-in.ts';
import { signOut } from './sign-out.ts';
import { createTokenSource } from './token-source.ts';
import {
  browsingPerson,
  comeBack,
  fastClock,
  servicesWith,
  signInAt,
  startWorld,
  type Answer,
} from './world.fixture.ts';

// Whatever goes wrong, nothing that is told or logged of it holds a secret, though the servers send back all that they are given.

const SECRET = 'SeCrEt';
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });

function recordingLog(lines: unknown[]): Log {
  const line = (fields: object, message: string): void => void lines.push([fields, message]);
  const log: Log = { debug: line, info: line, warn: line, error: line, child: () => log };
  return log;
}

/** Everything of an error: its message, its causes, whatever they carry. */
const whole = (value: unknown): string =>
  inspect(value, { depth: Infinity, showHidden: true, maxStringLength: Infinity, maxArrayLength: Infinity });

const FAILURES: readonly (readonly [string, (given: string) => Answer])[] = [
  [
    'an error that repeats it',
    (given) => ({ status: 400, body: { error: 'invalid_grant', error_description: given } }),
  ],
  ['an error code that repeats it', (given) => ({ status: 400, body: { error: given } })],
  [
    'a challenge',
    (given) => ({
      status: 401,
      headers: { 'www-authenticate': `Basic realm="${given}"` },
      body: { error: 'invalid_client', error_description: given },
    }),
  ],
  ['an outage', (given) => ({ status: 503, body: given })],
  ['no JSON', (given) => ({ body: `<html>${given}` })],
  [
    'a token that is none',
    (given) => ({
      body: { access_token: `${given} ${SECRET}`, token_type: 'bearer', refresh_token: SECRET },
    }),
  ],
  ['a token of a kind that nobody knows', (given) => ({ body: { access_token: SECRET, token_type: given } })],
  [
    'an identity token that is none',
    (given) => ({ body: { access_token: SECRET, token_type: 'bearer', id_token: given } }),
  ],
  [
    'a redirect',
    (given) => ({ status: 302, headers: { location: `https://evil.test/?${encodeURIComponent(given)}` } }),
  ],
  [
    'a life that is none',
    (given) => ({ body: { access_token: SECRET, token_type: 'bearer', expires_in: given } }),
  ],
];

const WAYS: readonly (readonly [SignInWay, Partial<SignInTarget>])[] = [
  ['browser', { clientId: 'mine', clientSecret: `${SECRET}-client` }],
  ['browser', {}],
  ['device', { clientId: 'mine', clientSecret: `${SECRET}-client` }],
  ['client-credentials', { clientId: 'mine', clientSecret: `${SECRET}-client` }],
  [
    'client-credentials',
    {
      clientId: 'mine',
      clientKey: { algorithm: 'ES256', pem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() },
    },
  ],
  ['assertion', { clientId: 'mine', assertion: { kind: 'jwt', jwt: `${SECRET}.jwt` } }],
];

describe.each(FAILURES)('a token endpoint that answers with %s', (_name, answer) => {
  test.each(WAYS)('tells nothing by %s', async (way, given) => {
    await using world = await startWorld();
    const told: unknown[] = [];
    const sent: string[] = [];
    world.server.on.set('GET /authorize', ({ url }) =>
      comeBack(url, world.server.origin, { code: `${SECRET}-code` }),
    );
    world.server.on.set('POST /device', () => ({
      body: {
        device_code: `${SECRET}-device`,
        user_code: 'A',
        verification_uri: 'https://a.test',
        expires_in: 2,
        interval: 0.001,
      },
    }));
    world.server.on.set('POST /token', ({ form, headers }) => {
      const login = Buffer.from(headers['authorization']?.slice(6) ?? '', 'base64').toString();
      const all = [...form.values(), login.split(':')[1] ?? ''];
      const secrets = all.filter((one) => one.includes(SECRET) || one.split('.').length === 3);
      sent.push(...secrets);
      return answer(secrets.join(' '));
    });
    await using services = servicesWith({
      log: recordingLog(told),
      clock: fastClock(),
      person: { ...browsingPerson(), showCode() {} },
    });
    const failed = await signIn({ ...world.target, ...given }, way, services).catch(
      (error: unknown) => error,
    );
    expect(failed).toBeInstanceOf(Error);
    expect(sent.length).toBeGreaterThan(0);
    const all = whole([failed, told]);
    expect(all).not.toContain(SECRET);
    for (const one of sent) expect(all).not.toContain(one);
  });

  test('tells nothing of a refresh, nor of signing out', async () => {
    await using world = await startWorld();
    const told: unknown[] = [];
    const log = recordingLog(told);
    const kept: KeptSignIn = {
      ...signInAt(world),
      revocationEndpoint: `${world.server.origin}/revoke`,
      client: { id: 'mine', secret: `${SECRET}-client`, authMethod: 'client_secret_post' },
      accessToken: `${SECRET}-access`,
      refreshToken: `${SECRET}-refresh`,
      expiresAt: 0,
    };
    for (const path of ['POST /token', 'POST /revoke'])
      world.server.on.set(path, ({ form }) => answer([...form.values()].join(' ')));
    const net = createSignInFetch({ timeoutMs: 2_000 });
    await using services = servicesWith({ log, fetch: net });
    const store = memoryStore(new Map([['a', kept]]));
    const source = createTokenSource('a', store, { ...services, random: () => 0 });
    const failed = await source.token().catch((error: unknown) => error);
    await source.close();
    await signOut(kept, services);
    net.close();
    // An identity token is of no interest here, so it spoils nothing.
    if (failed instanceof Error) expect(whole(failed)).not.toContain(SECRET);
    expect(whole(told)).not.toContain(SECRET);
  });
});
