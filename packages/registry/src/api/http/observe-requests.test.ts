import { once } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { forged, ISSUER, NOW, signed, signingKey } from '@skep/auth/token/tokens.fixture.ts';
import { type Log, silentLog } from '@skep/core/log/log.ts';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { apiUnderTest, oauthWith } from '../api.fixture.ts';
import { snapshotOf, storedServer } from '../snapshot.fixture.ts';

const key = await signingKey('k1');
const lines: object[] = [];
const log: Log = { ...silentLog, warn: (fields) => lines.push(fields), child: () => log };
const api = await apiUnderTest({
  snapshot: snapshotOf({ files: [storedServer('a/a')] }),
  auth: oauthWith({ kind: 'auth-only' }),
  keys: [key],
  listener: { log },
});
afterAll(() => api.close());
beforeEach(() => {
  lines.length = 0;
});

const stranger = await signingKey('k1');
const past = NOW / 1000 - 600;

test.each([
  ['none', undefined, { reason: 'missing' }],
  ['one of another provider', await signed(key, { iss: 'https://other.test' }), { reason: 'wrong-issuer' }],
  ['an expired one', await signed(key, { exp: past }), { reason: 'expired', provider: 'test' }],
  [
    'one for another audience',
    await signed(key, { aud: 'x' }),
    { reason: 'wrong-audience', provider: 'test' },
  ],
  ['one with another key', await signed(stranger), { reason: 'bad-signature', provider: 'test' }],
  [
    'an unsigned one',
    forged({ alg: 'none', kid: 'k1' }, { iss: ISSUER }),
    { reason: 'algorithm-refused', provider: 'test' },
  ],
])('a caller hears 401 for a token, the log why: %s', async (_, token, told) => {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const answer = await api.get('/registry/all/v0.1/servers', headers);
  expect(answer.statusCode).toBe(401);
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatchObject({ status: 401, path: '/registry/all/v0.1/servers', ...told });
  const heard = token === undefined ? 'missing or malformed authorization header' : 'token validation failed';
  expect(answer.json()).toEqual({ error: heard });
  if (token !== undefined) expect(JSON.stringify(lines)).not.toContain(token.slice(-16));
});

test('a request whose caller has left while it waited for its turn is logged all the same', async () => {
  const request = Object.assign(new IncomingMessage(new Socket()), {
    method: 'GET',
    url: '/registry/all/v0.1/servers',
  });
  const response = new ServerResponse(request);
  response.destroy();
  await once(response, 'close');
  api.open.server.emit('request', request, response);
  expect(lines).toMatchObject([{ status: 499, path: '/registry/all/v0.1/servers' }]);
});
