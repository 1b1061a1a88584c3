import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { buffer } from 'node:stream/consumers';
import { afterEach, describe, expect, test } from 'vitest';
import { Peers } from './peers.fixture.ts';

const peers = new Peers();
afterEach(() => peers.end());

/** What a program's own resolver gets. */
function resolverOf({ dns }: { readonly dns: number }): Resolver {
  const resolver = new Resolver({ timeout: 2_000, tries: 1 });
  resolver.setServers([`127.0.0.1:${dns}`]);
  return resolver;
}

/** A query with one question (RFC 1035 §4.1). */
function query(name: string, { type = 1, klass = 1, id = 7, flags = 0x0100, questions = 1 } = {}): Buffer {
  const header = Buffer.alloc(12);
  header.writeUInt16BE(id, 0);
  header.writeUInt16BE(flags, 2);
  header.writeUInt16BE(questions, 4);
  const labels = name.split('.').filter((label) => label !== '');
  const encoded = labels.map((label) =>
    Buffer.concat([Buffer.from([label.length]), Buffer.from(label, 'latin1')]),
  );
  const tail = Buffer.alloc(5);
  tail.writeUInt16BE(type, 1);
  tail.writeUInt16BE(klass, 3);
  return Buffer.concat([header, ...encoded, tail]);
}

function framed(message: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
}

describe('a name that is allowed at a port of the web', () => {
  test('is the gateway itself, whatever its case, and nobody is asked', async () => {
    const gateway = await peers.gateway({ hosts: ['.api.example'], ports: [443] });
    const resolver = resolverOf(gateway);
    expect(await resolver.resolve4('x.API.example', { ttl: true })).toEqual([
      { address: '10.9.8.7', ttl: 5 },
    ]);
    await expect(resolver.resolve6('x.api.example')).rejects.toMatchObject({ code: 'ENODATA' });
    await expect(resolver.resolveTxt('x.api.example')).rejects.toMatchObject({ code: 'ENODATA' });
    expect(gateway.resolved).toEqual([]);
    expect(gateway.decisions()).toEqual([]);
  });

  test('is one at port 80 too, and any where all is allowed', async () => {
    expect(await resolverOf(await peers.gateway({ ports: [80] })).resolve4('a.example')).toEqual([
      '10.9.8.7',
    ]);
    expect(await resolverOf(await peers.gateway({ allowAll: true })).resolve4('a.example')).toEqual([
      '10.9.8.7',
    ]);
  });
});

describe('any other name', () => {
  test('does not exist, of whatever type, is recorded, and nobody is asked', async () => {
    const gateway = await peers.gateway({ hosts: ['api.example'] });
    const resolver = resolverOf(gateway);
    const secret = '73656372657420.evil.example';
    for (const asking of [resolver.resolve4(secret), resolver.resolve6(secret), resolver.resolveTxt(secret)])
      await expect(asking).rejects.toMatchObject({ code: 'ENOTFOUND' });
    expect(gateway.resolved).toEqual([]);
    expect(gateway.decisions()).toEqual([
      {
        time: expect.any(String),
        decision: 'denied',
        host: secret,
        via: 'dns',
        reason: `the profile does not list ${secret}`,
        count: 1,
      },
    ]);
  });

  test('is one that is allowed at other ports only, and one that leads to this machine', async () => {
    const resolver = resolverOf(await peers.gateway({ hosts: ['db.example'], ports: [5432] }));
    await expect(resolver.resolve4('db.example')).rejects.toMatchObject({ code: 'ENOTFOUND' });
    const all = resolverOf(await peers.gateway({ allowAll: true }));
    await expect(all.resolve4('host.docker.internal')).rejects.toMatchObject({ code: 'ENOTFOUND' });
  });

  test('in reverse does not exist either', async () => {
    const resolver = resolverOf(await peers.gateway({ hosts: ['api.example'] }));
    await expect(resolver.reverse('10.0.0.1')).rejects.toMatchObject({ code: 'ENOTFOUND' });
  });
});

test('localhost is loopback', async () => {
  const resolver = resolverOf(await peers.gateway({}));
  expect(await resolver.resolve4('localhost')).toEqual(['127.0.0.1']);
  expect(await resolver.resolve6('x.localhost')).toEqual(['::1']);
});

test('with --allow-runtime-gateway its names are the gateway too', async () => {
  const resolver = resolverOf(await peers.gateway({ runtimeGateway: true }));
  expect(await resolver.resolve4('host.docker.internal')).toEqual(['10.9.8.7']);
});

test('where the gateway has an IPv6 address, names lead there', async () => {
  const resolver = resolverOf(await peers.gateway({ allowAll: true, options: { answerWith: 'fd00::9' } }));
  expect(await resolver.resolve6('a.example')).toEqual(['fd00::9']);
});

test('any number of questions on a connection are answered in turn', async () => {
  const gateway = await peers.gateway({ allowAll: true });
  const socket = peers.connect(gateway.dnsTcp);
  const asked = Buffer.concat([1, 2, 3].map((id) => framed(query('a.example', { id }))));
  socket.write(asked.subarray(0, 5));
  socket.end(asked.subarray(5));
  const answers = await buffer(socket);
  const size = answers.readUInt16BE(0) + 2;
  expect(answers.length).toBe(3 * size);
  expect([0, 1, 2].map((index) => answers.readUInt16BE(index * size + 2))).toEqual([1, 2, 3]);
  expect([...answers.subarray(-4)]).toEqual([10, 9, 8, 7]);
});

test('another class is refused', async () => {
  const gateway = await peers.gateway({ allowAll: true });
  const socket = peers.connect(gateway.dnsTcp);
  socket.end(framed(query('a.example', { klass: 3 })));
  expect((await buffer(socket)).readUInt16BE(4) & 0x0f).toBe(5);
});

describe('what is no query with one question gets no answer', () => {
  test.each([
    ['a header that is cut off', query('a.example').subarray(0, 11)],
    ['a name that is cut off', query('a.example').subarray(0, 15)],
    ['a type that is cut off', query('a.example').subarray(0, -1)],
    ['an answer', query('a.example', { flags: 0x8100 })],
    ['another operation', query('a.example', { flags: 0x2800 })],
    ['no question', query('a.example', { questions: 0 })],
    ['two questions', query('a.example', { questions: 2 })],
    [
      'a name that points to itself',
      Buffer.concat([query('').subarray(0, 12), Buffer.from([0xc0, 12, 0, 1, 0, 1])]),
    ],
    ['a name that is too long', query(Array.from({ length: 64 }, () => 'aaa').join('.'))],
    ['a NUL in a name', query('a\0b.example')],
    [
      'a dot inside of a label',
      Buffer.from(query('aXb.example').toString('latin1').replace('X', '.'), 'latin1'),
    ],
  ])('%s', async (_what, message) => {
    const gateway = await peers.gateway({ allowAll: true });
    const stream = peers.connect(gateway.dnsTcp);
    stream.end(framed(message));
    expect(await buffer(stream)).toHaveLength(0);
    // Over UDP the next question is the first that is answered.
    const socket = createSocket('udp4');
    try {
      socket.send(message, gateway.dns, '127.0.0.1');
      socket.send(query('a.example', { id: 99 }), gateway.dns, '127.0.0.1');
      const [answer] = (await once(socket, 'message')) as [Buffer];
      expect(answer.readUInt16BE(0)).toBe(99);
    } finally {
      socket.close();
    }
  });
});
