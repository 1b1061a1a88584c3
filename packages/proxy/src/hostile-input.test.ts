import { connect } from 'node:net';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  clientOf,
  FACES,
  frontOf,
  isSse,
  kindOf,
  type FaceClient,
  type FaceName,
  type Front,
} from './doubles/faces.ts';
import { ask, openStream } from './doubles/http-client.ts';
import { obedientServer, type Saying } from './doubles/obedient-server.ts';

// Two clients of one proxy. One of them, or the server in its answers to that one, does what comes to mind; the other hears
// nothing of it and is answered as ever. SKEP_TEST_FUZZ is the number of rounds for each face, from a new seed each time.

const { SKEP_TEST_FUZZ } = process.env;
const ROUNDS = {
  numRuns: Number(SKEP_TEST_FUZZ ?? 12),
  seed: SKEP_TEST_FUZZ === undefined ? 11 : Date.now(),
};

/** What nobody but the first client may hear, and what nobody but the second. */
const MOST_CALLS = 25;
const [FIRST, SECOND] = ['of-the-first', 'of-the-second'];

const ID = '"id":$ID';
const ANSWER = `{"jsonrpc":"2.0",${ID},"result":{"of":"${FIRST}"}}`;
const LARGE = 'x'.repeat(5 * 1024 * 1024);
const deep = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;

/** What a server may say for an answer. */
const WORDS: readonly string[] = [
  ANSWER,
  `{"jsonrpc":"2.0",${ID},"error":{"code":-32000,"message":"${FIRST}"}}`,
  `{"jsonrpc":"2.0",${ID},"result":{},"error":{"code":1,"message":""}}`,
  `{"jsonrpc":"2.0",${ID},"id":$ID,"result":{}}`,
  `{"jsonrpc":"1.0",${ID},"result":{}}`,
  `{${ID}}`,
  `{"jsonrpc":"2.0","id":"$ID","result":{}}`,
  '{"jsonrpc":"2.0","id":"nobody","result":{}}',
  '{"jsonrpc":"2.0","id":-1,"result":{}}',
  '{"jsonrpc":"2.0","id":1e999,"result":{}}',
  '{"jsonrpc":"2.0","id":9007199254740993,"result":{}}',
  '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}',
  `[${ANSWER},${ANSWER}]`,
  `{"jsonrpc":"2.0",${ID},"result":${deep(900)}}`,
  `{"jsonrpc":"2.0",${ID},"result":${deep(20_000)}}`,
  `{"jsonrpc":"2.0",${ID},"result":{"__proto__":{"method":"x"},"constructor":1e400,"\\ud800":"\\u0000"}}`,
  `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$ID,"progress":1,"message":"${FIRST}"}}`,
  '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":{},"progress":"x"}}',
  '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}',
  '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":$ID}}',
  `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"${FIRST}"}}`,
  '{"jsonrpc":"2.0","id":$ID,"method":"ping"}',
  '{"jsonrpc":"2.0","id":7,"method":"x/y","params":[]}',
  '\xff\xfe{}\x00',
  '\xef\xbb\xbf{}',
  '{"jsonrpc":"2.0","id":$ID,"result":{"text":"\xc3\x28"}}',
  '',
];
/** What stands between words on event streams, in good order and not. */
const FRAMES: readonly ((word: string) => string)[] = [
  (word) => `${word}\n`,
  (word) => `event: message\ndata: ${word}\n\n`,
  (word) => `data: ${word}\r\n\r\n`,
  (word) => `data: ${word}\r\r`,
  (word) => `id: \x00\nretry: 99999999\ndata: ${word}\n\n`,
  (word) => `id: 1\nevent: message\ndata: ${word.slice(0, 9)}\ndata: ${word.slice(9)}\n\n`,
  () => 'event: endpoint\ndata: http://evil.invalid/\n\n',
  () => 'event: endpoint\ndata: //evil.invalid\\@/?session_id=1\n\n',
  () => `: ${'c'.repeat(100_000)}\n`,
  (word) => word,
];

const word = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(...WORDS) },
  { weight: 2, arbitrary: fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes).toString('latin1')) },
  { weight: 1, arbitrary: fc.constant(`{"jsonrpc":"2.0",${ID},"result":{"text":"${LARGE}"}}`) },
); // prettier-ignore
const piece = fc.tuple(word, fc.constantFrom(...FRAMES)).map(([text, frame]) => frame(text));
const saying: fc.Arbitrary<Saying> = fc.record({
  pieces: fc.array(piece, { maxLength: 5 }),
  type: fc.constantFrom('text/event-stream', 'application/json', 'text/html', 'application/json;charset=x'),
  isCut: fc.boolean(),
});

const ids = fc.oneof(
  fc.constantFrom('1', '"1"', '-0', '1.0', '1e400', '9007199254740993', '12345678901234567890', 'null', 'true', '[]', '{}', '"\\ud800"', '""', `"${'x'.repeat(2_000)}"`),
  fc.string({ unit: 'binary' }).map((text) => JSON.stringify(text)),
); // prettier-ignore
const methods = fc.constantFrom('tools/call', 'tools/list', 'initialize', 'ping', 'x/y', '', '\u0000', '__proto__', 'server/discover', 'subscriptions/listen', 'resources/subscribe', 'resources/unsubscribe', 'logging/setLevel', 'notifications/initialized', 'notifications/cancelled', 'notifications/progress', 'tasks/cancel', 'completion/complete', 'elicitation/create'); // prettier-ignore
const params = fc.oneof(
  fc.constantFrom('{"requestId":1}', '{"requestId":"1"}', '{"progressToken":1,"progress":1}', '{"_meta":{"progressToken":1}}', '{"_meta":{"progressToken":1,"progressToken":2}}', '{"uri":"a:b"}', '{"level":"debug"}', '{"level":7}', '{"taskId":"t"}', '[]', '1', 'null', deep(990), deep(5_000), `{"x":"${LARGE}"}`),
  fc.json(),
); // prettier-ignore
const message = fc
  .record({ id: fc.option(ids), method: fc.option(methods), params: fc.option(params), more: fc.constantFrom('', ',"result":{}', ',"error":{}', ',"jsonrpc":"2.0"', ',"Method":"x"') })
  .map(({ id, method, params: given, more }) => {
    const members = [id && `"id":${id}`, method !== null && `"method":${JSON.stringify(method)}`, given && `"params":${given}`];
    return `{${['"jsonrpc":"2.0"', ...members.filter(Boolean)].join(',')}${more}}`;
  }); // prettier-ignore
const damage = fc.record({
  at: fc.nat(),
  length: fc.nat(20),
  by: fc.string({ unit: 'binary', maxLength: 20 }),
});
const body = fc.oneof(
  message,
  fc.tuple(message, damage).map(([text, { at, length, by }]) => {
    const from = at % (text.length + 1);
    return text.slice(0, from) + by + text.slice(from + length);
  }),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
);
const value = fc.oneof(
  fc.constantFrom('', ' ', '*/*', 'text/event-stream', 'application/json', 'text/html;q=0', '2026-07-28', '2025-11-25', '1999', '1-1', '0-0', '999999999999-1', 'null', 'tools/call', '=?base64?%?=', '7'),
  fc.string({ unit: fc.constantFrom(...Array.from({ length: 95 }, (_, at) => String.fromCharCode(32 + at))), maxLength: 300 }),
); // prettier-ignore
const headers = fc.dictionary(
  fc.constantFrom('Mcp-Session-Id', 'MCP-Protocol-Version', 'Mcp-Method', 'Mcp-Name', 'Mcp-Param-X', 'Last-Event-ID', 'Accept', 'Content-Type', 'Authorization', 'Origin', 'X-Forwarded-For', 'X-Skep-Pass', 'Expect'),
  value,
  { maxKeys: 3, noNullPrototype: true },
); // prettier-ignore

/** One thing that the first client does. */
const act = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('has its server say' as const), saying }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('sends' as const), body, headers, method: fc.constantFrom('POST', 'POST', 'POST', 'GET', 'DELETE') }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('writes' as const), damage, share: fc.double({ min: 0, max: 1, noNaN: true }) }) },
); // prettier-ignore
type Act = typeof act extends fc.Arbitrary<infer T> ? T : never;

/** What every client hears by right, in the middle of the other's calls. */
const CHANGED = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}';
const FOUND: [Act[]][] = [
  [
    Array.from({ length: 4 }, () => ({
      kind: 'has its server say',
      saying: {
        pieces: [`${CHANGED}\n`, `data: ${CHANGED}\n\n`],
        type: 'text/event-stream',
        isCut: false,
      },
    })),
  ],
];

const call = (of: string, more: object = {}): string =>
  JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'x', arguments: { of }, ...more },
  });

/** The bytes of one call, as they are on a connection. */
function bytesOf({ url, headers: own }: FaceClient): string {
  const { host, pathname, search } = new URL(url);
  const text = call(FIRST);
  const lines = Object.entries({ Host: host, 'Content-Type': 'application/json', ...own, 'Content-Length': text.length });
  return `POST ${pathname}${search} HTTP/1.1\r\n${lines.map(([name, one]) => `${name}: ${String(one)}\r\n`).join('')}\r\n${text}`;
} // prettier-ignore

/** Writes them, and is gone. */
function writeAndLeave(port: number, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {}).once('close', () => resolve());
    socket.write(bytes, () => socket.destroy());
  });
}

/** What the first client heard of it, if anything. */
async function perform(one: Act, client: FaceClient, { proxy }: Front, signal: AbortSignal): Promise<string> {
  const own = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...client.headers };
  if (one.kind === 'writes') {
    const whole = bytesOf(client);
    const { at, by } = one.damage;
    const from = at % whole.length;
    const damaged = whole.slice(0, from) + by + whole.slice(from + by.length);
    await writeAndLeave(proxy.port, Buffer.from(damaged.slice(0, whole.length * one.share), 'latin1'));
    return '';
  }
  const sent = one.kind === 'sends' ? { ...one, headers: { ...own, ...one.headers } } : { method: 'POST', headers: own, body: call(FIRST, { saying: one.saying }) };
  return (await ask(client.url, { ...sent, signal })).text;
} // prettier-ignore

/** Goes on as if there were nobody else. */
async function goOn(client: FaceClient): Promise<void> {
  const heard = await client.send(call(SECOND));
  expect(heard.text).toContain(`"of":"${SECOND}"`);
  expect(JSON.parse(heard.text)).toMatchObject({ id: 1 });
  expect(heard.text).not.toContain(FIRST);
}

/** What the stream of the second client told, once it is over; a client by SSE reads its own. */
async function heardOn({ face, proxy }: Front, { headers: own }: FaceClient): Promise<() => Promise<string>> {
  if (isSse(face)) return () => Promise.resolve('');
  const stream = await openStream(proxy.url, {
    method: 'GET',
    headers: { ...own, Accept: 'text/event-stream' },
  });
  let text = '';
  const reading = (async () => {
    for (let next = await stream.next(); next !== undefined; next = await stream.next()) text += next.data;
  })();
  return async () => {
    stream.abort();
    await reading;
    return text;
  };
}

async function withoutHarm(front: Front, acts: readonly Act[]): Promise<void> {
  const [first, second] = [await clientOf(front), await clientOf(front)];
  const heard = await heardOn(front, second);
  const leaving = new AbortController();
  const doing = acts.map((one) => perform(one, first, front, leaving.signal).catch(() => ''));
  const done = Promise.all(doing);
  const over = { yet: false };
  void done.then(() => (over.yet = true));
  // What is never answered ends when its client leaves.
  for (let calls = 0; calls < 3 || (calls < MOST_CALLS && !over.yet); calls += 1) await goOn(second);
  leaving.abort();
  for (const text of await done) expect(text).not.toContain(SECOND);
  await goOn(second);
  expect(await heard()).not.toContain(FIRST);
  first.leave();
  second.leave();
}

async function facing(face: FaceName, work: (front: Front) => Promise<void>): Promise<void> {
  await using server = await obedientServer(kindOf(face));
  await using front = await frontOf(face, server, { requestTimeoutMs: 10_000 });
  await work(front);
  expect((await ask(`${front.proxy.origin}/health`, { method: 'GET' })).status).toBe(200);
}

describe.each(FACES)('%s', (face) => {
  test('nothing that one client does, or has its server do, hurts another or is heard by it', () =>
    facing(face, async (front) => {
      const acts = fc.array(act, { minLength: 1, maxLength: 4 });
      await fc.assert(
        fc.asyncProperty(acts, (some) => withoutHarm(front, some)),
        { ...ROUNDS, examples: FOUND },
      );
    }));

  test('a client may go away at every point of its call', () =>
    facing(face, async (front) => {
      const [first, second] = [await clientOf(front), await clientOf(front)];
      const bytes = Buffer.from(bytesOf(first), 'latin1');
      for (let at = 1; at <= bytes.length; at += 1) {
        await writeAndLeave(front.proxy.port, bytes.subarray(0, at));
        if (at % 50 === 0 || at === bytes.length) await goOn(second);
      }
      first.leave();
      second.leave();
    }));
});
