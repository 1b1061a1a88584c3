import * as fc from 'fast-check';
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { anyText } from '@skep/core/json/any-text.fixture.ts';
import { Documented } from './registry/documented.ts';
import { CALLERS, type CallerName, Governed, HIDDEN } from './registry/governed.ts';
import { type HostileRequest, hostileRequest, LIKELY } from './registry/hostile.ts';
import type { Running } from './registry/process.ts';
import { rawSocket, type RawSocket, sayRaw } from './registry/raw-socket.ts';
import { CLAIMS, DATA, type Refusal, REFUSALS } from './registry/refusals.ts';
import { DEFAULTS } from './registry/scenarios.ts';
import { type Received, send } from './registry/send.ts';
import { storeDump } from './registry/store-dump.ts';

// What a hostile network sends to the running program in full authorization. Whatever it is: no answer above 499, no crash,
// no change by what is refused, no hidden name in any answer, bounded memory.

/** The same requests in every run; a failure names the path to its smallest form. */
const SEED = { seed: 20_260_101 };

/**
 * On a machine under load the later requests are left out: those that would begin after this time. The first is always made, however
 * long it takes, and each is seen to its end; fast-check would take a first one that is slow for a failure.
 */
function withinTime<Given extends readonly unknown[]>(
  limitMs: number,
  check: (...given: Given) => Promise<void>,
): (...given: Given) => Promise<void> {
  let end: number | undefined;
  return async (...given) => {
    end ??= performance.now() + limitMs;
    if (performance.now() < end) await check(...given);
  };
}

let governed: Governed;
let running: Running;
let documented: Documented;
let slow: RawSocket[];

beforeAll(async () => {
  governed = await Governed.create();
  running = await governed.serve();
  documented = new Documented((await send(running.open, { target: '/openapi.json' })).text);
  const linter = { name: 'io.acme/linter', version: '1.0.0', description: 'd' };
  const secret = { name: `io.acme/${HIDDEN}-published`, version: '1.0.0', description: 'd' };
  for (const [as, asked, body] of [
    ['writer', 'POST /v1/entries', { server: linter, claims: CLAIMS }],
    ['root', 'POST /v1/entries', { server: secret, claims: { org: 'other' } }],
    ['root', 'PUT /v1/sources/extra', { file: { data: DATA } }],
    ['root', 'PUT /v1/registries/team', { sources: ['extra'] }],
  ] as const) {
    expect((await ask(as, asked, body)).status).toBe(201);
  }
  slow = Array.from({ length: 40 }, (_, index) => slowClient(index));
});
afterAll(async () => {
  for (const client of slow) client.destroy();
  await governed.end();
});

/** `asked` is `METHOD target`. */
function ask(
  as: CallerName,
  asked: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Received> {
  const [method = '', target = ''] = asked.split(' ');
  const request = { method, target, headers: { ...governed.as(as), ...headers } };
  return send(running.open, body === undefined ? request : { ...request, body });
}

const dump = (): string => storeDump(governed.folder.path, 'registry-1.db');

/** Says a part of a request, and then nothing more. */
function slowClient(index: number): RawSocket {
  const client = rawSocket(running.open);
  const { authorization = '' } = governed.as('writer');
  const head = `POST /v1/entries HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\n`;
  const length = 'Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"server":';
  client.write([head.slice(0, 20), head, `${head}${length}`][index % 3] ?? '');
  return client;
}

function revealing({ headers, text }: Received): boolean {
  const cursors = [...text.matchAll(/"nextCursor":"([^"]+)"/g)].map(([, cursor = '']) =>
    Buffer.from(cursor, 'base64url').toString(),
  );
  return [text, JSON.stringify(headers), ...cursors].some((one) => one.includes(HIDDEN));
}

describe('every documented refusal, word for word', () => {
  test.each<Refusal>(REFUSALS)('%s', async (...[, as, asked, status, error, body]) => {
    const before = dump();
    const answer = await ask(as, asked, body);
    expect([answer.status, answer.text]).toEqual([status, JSON.stringify({ error })]);
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(dump()).toBe(before);
  });
});

describe('whatever is asked', () => {
  const RIGHTLESS = ['nobody', 'reader', 'writer'] as const;

  /** What no operation answers for itself. */
  const STRAY =
    /^\{"error":"(?:no such endpoint|method not allowed|request headers too large|invalid URL encoding in path segment \\".*)"\}$/;

  async function sendHostile({
    operation,
    as,
    target,
    headers,
    body,
  }: HostileRequest): Promise<{ wrote: boolean }> {
    const answer = await ask(as, `${operation.method} ${target}`, body, headers);
    expect(answer.status).toBeLessThan(500);
    if (answer.status >= 400) expect(JSON.parse(answer.text)).toEqual({ error: expect.any(String) });
    // Managers of registries may see every entry of their sources.
    if ((RIGHTLESS as readonly CallerName[]).includes(as)) expect(revealing(answer)).toBe(false);
    if (!STRAY.test(answer.text)) expect(documented.faults(operation, answer)).toEqual([]);
    return { wrote: answer.status < 400 && operation.method !== 'GET' };
  }

  test(
    'is answered as documented, reveals nothing, and changes nothing when it is refused',
    { timeout: 60_000 },
    async () => {
      const request = hostileRequest(documented.operations, [
        ...RIGHTLESS,
        'both',
        'both',
        'both',
        'outsider',
      ]);
      await fc.assert(
        fc.asyncProperty(
          fc.array(request, { minLength: 6, maxLength: 6 }),
          withinTime(12_000, async (requests) => {
            const before = dump();
            const answers = await Promise.all(requests.map(sendHostile));
            if (!answers.some(({ wrote }) => wrote)) expect(dump()).toBe(before);
          }),
        ),
        { ...SEED, numRuns: 300 },
      );
    },
  );

  test('shows no hidden name to those who read all that there is', async () => {
    let found = 0;
    for (const operation of documented.operations.filter(({ method }) => method === 'GET')) {
      for (const name of operation.path.includes('{name}') ? (LIKELY['name'] ?? []) : ['']) {
        const target = operation.path.replaceAll(/\{(\w+)\}/g, (_, key: string) =>
          key === 'name' ? name : (DEFAULTS[key] ?? key),
        );
        const answers = await Promise.all(RIGHTLESS.map((as) => ask(as, `GET ${target}`)));
        expect([target, answers.map(revealing)]).toEqual([target, [false, false, false]]);
        found += answers.filter(({ status }) => status === 200).length;
      }
    }
    expect(found).toBeGreaterThan(80);
  });

  test('is answered for a hidden name as for one that nobody has', async () => {
    const absent = HIDDEN.replace('z', 'y');
    const shown = ({ status, headers, text }: Received): unknown => {
      const { date: _, 'x-request-id': __, etag: ___, ...rest } = headers;
      return [status, rest, text.replaceAll(absent, HIDDEN)];
    };
    const names = (name: string): string[] => [
      ...[`io.${name}%2Ftool`, `io.acme%2F${name}`, `io.acme%2F${name}-published`].flatMap((server) => [
        `GET /registry/all/v0.1/servers/${server}/versions`,
        `GET /all/v0.1/servers/${server}/versions/latest`,
        `HEAD /all/v0.1/servers/${server}/versions/1.0.0`,
      ]),
      ...['skills', 'plugins'].flatMap((kind) => [
        `GET /all/v0.1/x/dev.skep/${kind}/io.acme/${name}`,
        `GET /all/v0.1/x/dev.skep/${kind}/io.acme/${name}/versions`,
        `GET /all/v0.1/x/dev.skep/${kind}/io.acme/${name}/versions/1.0.0`,
      ]),
      `GET /all/v0.1/servers?search=${name}`,
      `GET /all/v0.1/servers?version=latest&cursor=${Buffer.from(`io.acme/${name},0`).toString('base64url')}`,
      `GET /v1/sources/${name}-src`,
      `GET /v1/sources/${name}-src/entries`,
      `GET /v1/sources/${name}-src/sync`,
      `POST /v1/sources/${name}-src/sync`,
      `GET /v1/explain?source=${name}-src`,
      `GET /v1/explain?registry=all&entry=io.acme%2F${name}`,
      `DELETE /all/v0.1/servers/io.acme%2F${name}/versions/1.0.0`,
    ];
    const others = names(absent);
    for (const as of ['reader', 'writer', 'both'] as const) {
      for (const [index, asked] of names(HIDDEN).entries()) {
        const [hidden, other] = [await ask(as, asked), await ask(as, others[index] ?? '')];
        expect([as, asked, shown(hidden)]).toEqual([as, asked, shown(other)]);
      }
    }
  });

  test('a forged cursor shows nothing but what comes after it and is visible', async () => {
    const visible = ['io.acme/linter', 'io.acme/news', 'io.acme/weather'];
    const namesOf = ({ text }: Received): string[] => {
      const page: { servers: { server: { name: string } }[] } = JSON.parse(text);
      return page.servers.map(({ server }) => server.name).filter((name) => visible.includes(name));
    };
    const name = fc.oneof(fc.constantFrom(...visible, `io.acme/${HIDDEN}`, '', '\u{10ffff}'), anyText());
    await fc.assert(
      fc.asyncProperty(
        name,
        fc.string(),
        fc.constantFrom(1, 2, 1000),
        withinTime(4000, async (at, version, limit) => {
          const cursor = Buffer.from(`${at.toWellFormed()},${version}`).toString('base64url');
          const answer = await ask('reader', `GET /all/v0.1/servers?limit=${limit}&cursor=${cursor}`);
          expect([200, 400]).toContain(answer.status);
          expect(revealing(answer)).toBe(false);
          if (answer.status === 400) return;
          const listed = namesOf(answer);
          expect(listed).toEqual(visible.filter((one) => listed.includes(one)));
          for (const one of listed)
            expect(Buffer.compare(Buffer.from(one), Buffer.from(at.toWellFormed()))).not.toBe(-1);
        }),
      ),
      { ...SEED, numRuns: 200 },
    );
  });
});

describe('a token', () => {
  const REFUSED = [401, '{"error":"token validation failed"}'];
  /** Within a minute after the keys were asked for because of another key id that nobody knows. */
  const NOT_KNOWN = [503, '{"error":"the identity provider does not answer"}'];
  const me = async (token: string): Promise<unknown> => {
    const { status, text, headers } = await ask('nobody', 'GET /v1/me', undefined, {
      authorization: `Bearer ${token}`,
    });
    if (token.length > 20) expect(`${text}${JSON.stringify(headers)}`).not.toContain(token);
    return [status, text];
  };
  const good = (): string => governed.as('root')['authorization']?.slice('Bearer '.length) ?? '';
  const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const now = (): number => Math.floor(Date.now() / 1000);
  const root = () => ({ ...CALLERS.root, exp: now() + 300 });

  test.each<[what: string, token: () => string | Promise<string>]>([
    ['of another issuer', () => governed.idp.sign({ ...root(), iss: 'https://evil.test' })],
    ['for another audience', () => governed.idp.sign({ ...root(), aud: 'other' })],
    ['that has expired', () => governed.idp.sign({ ...root(), exp: now() - 60 })],
    ['without an end', () => governed.idp.sign({ ...CALLERS.root })],
    ['that is not valid yet', () => governed.idp.sign({ ...root(), nbf: now() + 3600 })],
    ['under a key nobody published', () => governed.idp.sign(root(), { kid: 'key-9' })],
    ['without a key id', () => governed.idp.sign(root(), { kid: undefined })],
    ['under a key with a path as id', () => governed.idp.sign(root(), { kid: '../../jwks' })],
    ['unsigned', () => `${encoded({ alg: 'none' })}.${good().split('.')[1] ?? ''}.`],
    ['that says it is unsigned', () => good().replace(/^[^.]+/, encoded({ alg: 'none', kid: 'key-1' }))],
    ['with another algorithm', () => good().replace(/^[^.]+/, encoded({ alg: 'HS256', kid: 'key-1' }))],
    [
      'with an embedded key',
      () => good().replace(/^[^.]+/, encoded({ alg: 'RS256', jwk: { kty: 'oct', k: 'AA' } })),
    ],
    [
      'with other claims',
      () => good().replace(/\.[^.]+\./, `.${encoded({ ...root(), iss: governed.idp.issuer })}.`),
    ],
    ['of two parts', () => good().slice(0, good().lastIndexOf('.'))],
    ['of four parts', () => `${good()}.AAAA`],
  ])('%s is refused in one and the same way', async (what, token) => {
    const refusals = what.startsWith('under a key') ? [REFUSED, NOT_KNOWN] : [REFUSED];
    expect(refusals).toContainEqual(await me(await token()));
  });

  test('truncated or altered anywhere is refused', async () => {
    expect(await me(good())).toEqual([200, '{"subject":"root","roles":["superAdmin"]}']);
    const at = fc.nat({ max: good().length - 3 });
    await fc.assert(
      fc.asyncProperty(
        at,
        fc.boolean(),
        withinTime(4000, async (index, cut) => {
          const token = good();
          const other = token[index] === 'A' ? 'B' : 'A';
          // The last character of a part may hold bits that mean nothing.
          fc.pre(token[index] !== '.' && (cut || token[index + 1] !== '.'));
          const altered = cut
            ? token.slice(0, index + 1)
            : `${token.slice(0, index)}${other}${token.slice(index + 1)}`;
          expect([REFUSED, NOT_KNOWN]).toContainEqual(await me(altered));
        }),
      ),
      { ...SEED, numRuns: 200 },
    );
  });

  test.each<[what: string, claims: object]>([
    ['prototype names', { role: { __proto__: 'super-admin' }, constructor: 'super-admin' }],
    ['a nested role', { role: { role: 'super-admin' } }],
    ['roles in lists of lists', { role: [['super-admin']] }],
    ['numbers and booleans', { role: true, org: 5, team: null }],
    ['another case', { Role: 'super-admin', ORG: 'acme' }],
    [
      'many claims',
      Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`c${index}`, 'super-admin'])),
    ],
  ])('with %s gives no rights', async (_, claims) => {
    const headers = {
      authorization: `Bearer ${await governed.idp.sign({ sub: 'x', exp: now() + 60, ...claims })}`,
    };
    const who = await ask('nobody', 'GET /v1/me', undefined, headers);
    expect([who.status, who.text]).toEqual([200, '{"subject":"x","roles":[]}']);
    expect((await ask('nobody', 'GET /all/v0.1/servers', undefined, headers)).status).toBe(403);
  });
});

describe('what is no request', () => {
  const line = fc.constantFrom(
    'GET /v1/me HTTP/1.1',
    'GET http://evil.test/v1/me HTTP/1.1',
    'GET //evil.test/v1/me HTTP/1.1',
    'OPTIONS * HTTP/1.1',
    'CONNECT evil.test:443 HTTP/1.1',
    'GET /v1/me HTTP/9.9',
    'POST /v1/entries HTTP/1.1',
    'PRI * HTTP/2.0',
    `GET /${'a'.repeat(20_000)} HTTP/1.1`,
  );
  const header = fc.oneof(
    fc.constantFrom('Host: x', 'Host: y', 'Content-Length: 5', 'Content-Length: -1', 'Content-Length: 5, 6'),
    fc.constantFrom(
      'Transfer-Encoding: chunked',
      'Transfer-Encoding: chunked, identity',
      'Transfer-Encoding : chunked',
    ),
    fc.constantFrom(
      'Connection: close',
      'Expect: 100-continue',
      'Expect: x',
      'Upgrade: h2c',
      ' folded: x',
      ': empty',
      'A\0: b',
    ),
    fc.constantFrom('Authorization: Bearer \u00ff', `X: ${'a'.repeat(17_000)}`),
    anyText({ maxLength: 30 }),
  );
  const garbage = fc.oneof(
    fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
    fc
      .tuple(
        line,
        fc.array(header, { maxLength: 5 }),
        fc.constantFrom('\r\n', '\n', '\r'),
        fc.string({ maxLength: 50 }),
      )
      .map(([first, headers, end, rest]) => Buffer.from([first, ...headers, '', rest].join(end), 'latin1')),
  );

  test('is refused or cut off, and does not disturb the next one', { timeout: 60_000 }, async () => {
    const before = dump();
    await fc.assert(
      fc.asyncProperty(
        garbage,
        withinTime(6000, async (bytes) => {
          const answer = await sayRaw(running.open, bytes);
          for (const [, status] of answer.matchAll(/HTTP\/1\.1 (\d{3}) /g))
            expect(Number(status)).toBeLessThan(500);
          expect(answer).not.toContain(HIDDEN);
        }),
      ),
      { ...SEED, numRuns: 400 },
    );
    expect((await ask('root', 'GET /v1/me')).status).toBe(200);
    expect(dump()).toBe(before);
  });

  test(
    'is cut off when it does not come to an end, while others are served',
    { timeout: 60_000 },
    async () => {
      const endless = rawSocket(running.open);
      const { authorization: token = '' } = governed.as('both');
      endless.write(
        `POST /v1/entries HTTP/1.1\r\nHost: x\r\nAuthorization: ${token}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
      );
      const chunk = `10000\r\n${' '.repeat(0x10000)}\r\n`;
      for (let sent = 0; sent < 40; sent += 1) endless.write(chunk);
      expect(await endless.ended).toMatch(/^HTTP\/1\.1 413 .*\{"error":"request body too large"\}$/s);
      expect((await ask('root', 'GET /v1/me')).status).toBe(200);
      for (const answer of await Promise.all(slow.map(({ ended }) => ended))) {
        expect(answer).toMatch(/^(?:HTTP\/1\.1 408 .*\{"error":"request not received in time"\})?$/s);
      }
    },
  );
});

test('after all of it the program runs in bounded memory and has logged no secret', async () => {
  expect(running.child.exitCode).toBeNull();
  expect((await send(running.internal, { target: '/readiness' })).status).toBe(200);
  if (process.platform === 'linux') {
    const status = await readFile(`/proc/${running.child.pid}/status`, 'utf8');
    const kilobytes = Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]);
    expect(kilobytes).toBeLessThan(400_000);
  }
  expect(running.stderr()).not.toContain('eyJ');
  expect(running.stderr()).not.toContain('"level":"error"');
});
