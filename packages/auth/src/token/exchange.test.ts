import { expect, test } from 'vitest';
import { createExchanger, type ExchangeSettings } from './exchange.ts';
import type { IssuerRequest } from './issuer-fetch.ts';

const URN = 'urn:ietf:params:oauth:token-type:access_token';
const GOOD = { access_token: 'new.1', token_type: 'Bearer', issued_token_type: URN, expires_in: 300 };

/** An endpoint that answers as told, one after another, and the last for ever. */
function endpoint(settings: Partial<ExchangeSettings>, ...answers: readonly (() => Response)[]) {
  const asked: { url: string; headers: Record<string, string>; form: Record<string, string> }[] = [];
  let now = 0;
  const fetch = (url: string, { headers = {}, body }: IssuerRequest = {}): Promise<Response> => {
    const answer = answers[Math.min(asked.length, answers.length - 1)];
    asked.push({ url, headers: { ...headers }, form: Object.fromEntries(new URLSearchParams(body)) });
    return Promise.resolve().then(() => answer?.() ?? Response.error());
  };
  const { exchange } = createExchanger(
    { url: 'https://idp.test/token', plainHttp: 'never', subjectTokenType: 'access_token', ...settings },
    { fetch, now: () => now },
  );
  return { exchange, asked, pass: (seconds: number) => void (now += seconds * 1_000) };
}
const json =
  (body: unknown, status = 200) =>
  () =>
    Response.json(body, { status });

test('a token is exchanged as RFC 8693 says', async () => {
  const all = { clientId: 'a b', clientSecret: 'c:d&', audience: 'svc', scopes: ['x', 'y'], resource: 'https://r.test' };
  const it = endpoint({ ...all, subjectTokenType: 'id_token' }, json(GOOD));
  expect(await it.exchange('old')).toBe('new.1');
  expect(it.asked).toEqual([
    {
      url: 'https://idp.test/token',
      headers: {
        accept: 'application/json',
        'content-type': 'application/x-www-form-urlencoded',
        authorization: `Basic ${Buffer.from('a+b:c%3Ad%26').toString('base64')}`,
      },
      form: {
        grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
        subject_token: 'old',
        subject_token_type: 'urn:ietf:params:oauth:token-type:id_token',
        requested_token_type: URN,
        audience: 'svc',
        scope: 'x y',
        resource: 'https://r.test',
      },
    },
  ]);
}); // prettier-ignore

test('a client without a secret names itself in the form, and nobody is named without one', async () => {
  const named = endpoint({ clientId: 'a' }, json(GOOD));
  await named.exchange('old');
  expect(named.asked[0]?.form).toMatchObject({ client_id: 'a' });
  const unnamed = endpoint({}, json(GOOD));
  await unnamed.exchange('old');
  for (const { asked } of [named, unnamed]) expect(asked[0]?.headers).not.toHaveProperty('authorization');
  expect(unnamed.asked[0]?.form).not.toHaveProperty('client_id');
});

test('one token is exchanged once, until shortly before the new one expires', async () => {
  const it = endpoint({}, json(GOOD), json({ ...GOOD, access_token: 'other' }), json({ ...GOOD, access_token: 'new.2' }));
  expect(await Promise.all([it.exchange('old'), it.exchange('old')])).toEqual(['new.1', 'new.1']);
  expect(await it.exchange('another')).toBe('other');
  it.pass(269);
  expect(await it.exchange('old')).toBe('new.1');
  it.pass(1);
  expect(await it.exchange('old')).toBe('new.2');
  expect(it.asked).toHaveLength(3);
}); // prettier-ignore

test('a token that says nothing of its end is not kept', async () => {
  const it = endpoint({}, json({ ...GOOD, expires_in: undefined }));
  await it.exchange('old');
  await it.exchange('old');
  expect(it.asked).toHaveLength(2);
});

test.each<[string, () => Response]>([
  ['an OAuth error', json({ error: 'invalid_grant' }, 400)],
  ['a redirect', () => new Response(null, { status: 302 })],
  ['another success', json(GOOD, 201)],
  ['no JSON', () => new Response('x')],
  ['no token', json({ ...GOOD, access_token: '' })],
  ['no type', json({ ...GOOD, token_type: undefined })],
  ['a token of another type', json({ ...GOOD, token_type: 'DPoP' })],
  ['no issued type', json({ ...GOOD, issued_token_type: undefined })],
  ['a token that no header can carry', json({ ...GOOD, access_token: 'a\r\nb' })],
])('%s is a refusal, which is not kept', async (_name, answer) => {
  const it = endpoint({}, answer, json(GOOD));
  await expect(it.exchange('old')).rejects.toMatchObject({ code: 'auth/exchange-refused' });
  expect(await it.exchange('old')).toBe('new.1');
});

test.each<[string, () => Response]>([
  ['an outage', json({}, 503)],
  ['no answer', () => { throw new TypeError('gone'); }],
])('%s is no refusal', async (_name, answer) => {
  const it = endpoint({}, answer);
  await expect(it.exchange('old')).rejects.toMatchObject({ code: 'auth/unavailable' });
}); // prettier-ignore

test.each(['http://idp.test/token', 'idp.test', 'https://a:b@idp.test/token'])('%s is no address of one', (url) => {
  expect(() => endpoint({ url })).toThrow(expect.objectContaining({ code: 'auth/invalid-provider' }));
}); // prettier-ignore
