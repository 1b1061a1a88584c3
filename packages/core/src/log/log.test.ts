import { PassThrough } from 'node:stream';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SkepError } from '../errors/skep-error.ts';
import { silentLog } from './log.ts';
import { openLog, type LogLevel } from './pino-log.ts';
import { isSecretName, redact, redactUrl } from './redact.ts';

async function lines(level: LogLevel, write: (log: Awaited<ReturnType<typeof openLog>>) => void) {
  const stream = new PassThrough({ encoding: 'utf8' });
  write(await openLog({ level, stream, fields: { component: 'test' } }));
  const text = String(stream.read() ?? '');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

describe('redact', () => {
  test.each([
    'authorization',
    'Proxy-Authorization',
    'cookie',
    'Set-Cookie',
    'token',
    'access_token',
    'refreshToken',
    'client_secret',
    'clientSecret',
    'password',
    'X-Api-Key',
    'private_key',
    'code_verifier',
  ])('hides %s', (name) => {
    expect(redact({ [name]: 'hunter2' })).toEqual({ [name]: '[redacted]' });
  });

  test.each(['token_url', 'tokenType', 'secretary', 'name', 'cookieJarSize'])('shows %s', (name) => {
    expect(isSecretName(name)).toBe(false);
  });

  test('keeps flags about secrets, which are not secrets', () => {
    expect(redact({ token: true, secret: null })).toEqual({ token: true, secret: null });
  });

  test('finds secrets at any depth and in errors', () => {
    const error = new SkepError('config/invalid', {
      message: 'sent Bearer abcdefgh12345',
      detail: { request: { headers: [{ Authorization: 'hunter2' }] } },
      cause: new TypeError('to https://ann:hunter2@host/'),
    });
    const text = JSON.stringify(redact({ err: error }));
    expect(text).not.toContain('hunter2');
    expect(text).not.toContain('abcdefgh12345');
    expect(text).toContain('config/invalid');
  });

  test.each([
    [
      { name: 'API_KEY', value: 'hunter2' },
      { name: 'API_KEY', value: '[redacted]' },
    ],
    [
      { name: 'X', isSecret: true, default: 'hunter2' },
      { name: 'X', isSecret: true, default: '[redacted]' },
    ],
    [
      { name: 'Authorization', value: 'hunter2' },
      { name: 'Authorization', value: '[redacted]' },
    ],
    [
      { name: 'REGION', value: 'eu' },
      { name: 'REGION', value: 'eu' },
    ],
    [
      { name: 'X', isSecret: false, default: 'eu' },
      { name: 'X', isSecret: false, default: 'eu' },
    ],
  ])('redacts the value of a secret input: %j', (input, expected) => {
    expect(redact({ headers: [input] })).toEqual({ headers: [expected] });
  });

  test('ends on a cycle', () => {
    const loop: Record<string, unknown> = {};
    loop['self'] = loop;
    expect(JSON.stringify(redact(loop))).toContain('[too deep]');
  });

  test('leaves no secret of a random document', () => {
    const secretDocument = fc.letrec((tie) => ({
      node: fc.oneof(
        { maxDepth: 5 },
        fc.record({ password: fc.constant('hunter2') }),
        fc.array(tie('node'), { maxLength: 3 }),
        fc.dictionary(fc.string(), tie('node'), { maxKeys: 3 }),
      ),
    }));
    fc.assert(
      fc.property(secretDocument.node, (document) => {
        expect(JSON.stringify(redact(document)) ?? '').not.toContain('hunter2');
      }),
    );
  });
});

test.each([
  ['https://ann:pw@host/x', 'https://[redacted]@host/x'],
  ['git+ssh://git@host/x', 'git+ssh://[redacted]@host/x'],
  ['https://h/c.json?a=1&access_token=hunter2&b=2#x', 'https://h/c.json?a=1&access_token=[redacted]&b=2#x'],
  ['https://h/c?sig=hunter2', 'https://h/c?sig=[redacted]'],
  ['/c?limit=100&cursor=abc', '/c?limit=100&cursor=abc'],
  ['see https://a:b@c@host/ now', 'see https://[redacted]@host/ now'],
  ['https://host/@scope/name?x=a@b', 'https://host/@scope/name?x=a@b'],
  ['no url at all @', 'no url at all @'],
])('redactUrl turns %s into %s', (text, expected) => {
  expect(redactUrl(text)).toBe(expected);
});

test.each([
  ['a path of one word', 'a'],
  ['signs of a scheme', 'a:'],
  ['beginnings of addresses', 'a://'],
  ['parameters', '&a'],
  ['credentials', 'bearer '],
])(
  'a request that repeats %s holds nobody up: redacting takes time by the length and not by its square',
  (_, part) => {
    const text = part.repeat(300_000 / part.length);
    const began = performance.now();
    redact({ path: text });
    // By the square it is a minute.
    expect(performance.now() - began).toBeLessThan(5_000);
  },
);

describe('openLog', () => {
  test('writes one JSON line with level, time, own fields and message', async () => {
    const [line] = await lines('info', (log) => log.info({ port: 1 }, 'listening'));
    expect(line).toMatchObject({ level: 'info', component: 'test', port: 1, msg: 'listening' });
    expect(String(line?.['time'])).toMatch(/^\d{4}-\d\d-\d\dT/u);
  });

  test('drops what is below its level', async () => {
    expect(await lines('warn', (log) => log.info({}, 'quiet'))).toEqual([]);
  });

  test('redacts the fields of lines, children and errors', async () => {
    const found = await lines('debug', (log) => {
      log.child({ cookie: 'hunter2' }).error({ err: new Error('boom'), token: 'hunter2' }, 'failed');
    });
    expect(JSON.stringify(found)).not.toContain('hunter2');
    expect(found[0]?.['err']).toMatchObject({ type: 'Error', message: 'boom' });
  });

  test('the silent log can be used everywhere a log is', () => {
    expect(() => silentLog.child({}).error({}, 'x')).not.toThrow();
  });
});
