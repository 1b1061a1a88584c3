import type { Socket as UdpSocket } from 'node:dgram';
import { isIP, type Server, type Socket } from 'node:net';
import { addressBytes } from '@skep/core/fetch/address-class.ts';
import type { Clock, Timer } from '@skep/core/time/clock.ts';
import { acceptFrom } from './accept.ts';
import { answerTo, CLASS_IN, CODE, type Question, readQuestion, TYPE } from './dns-message.ts';
import { canonicalHost } from './host-name.ts';
import type { Judge } from './judge.ts';
import type { Decided } from './reach.ts';

export interface DnsOptions {
  readonly judge: Judge;
  readonly record: (decided: Decided) => void;
  readonly clock: Clock;
  /** What allowed names are answered with. */
  readonly answerWith: string;
}

/** Where the gateway takes connections by name alone (serve-direct.ts). */
const DIRECT_PORTS = [443, 80] as const;
const MAX_QUERY_BYTES = 4_096;
const MAX_TCP = 64;
const TCP_IDLE_MS = 10_000;

/**
 * Answers questions for names (RFC 1035) out of the policy alone, so nothing leaves through them: what may be reached at
 * the ports of the web is said to be the gateway itself, everything else not to exist. What is no query with one
 * question gets no answer.
 */
export function serveDnsOverUdp(socket: UdpSocket, options: DnsOptions): void {
  socket.on('error', () => {});
  socket.on('message', (message, { port, address }) => {
    const answer = message.length > MAX_QUERY_BYTES ? undefined : answerMessage(message, options);
    if (answer !== undefined) socket.send(answer, port, address, () => {});
  });
}

/** The same over TCP (RFC 7766): messages with their length before them, any number on a connection. */
export function serveDnsOverTcp(listener: Server, options: DnsOptions): void {
  const { clock } = options;
  acceptFrom(
    listener,
    (socket) =>
      talk(
        socket,
        clock.after(TCP_IDLE_MS, () => void socket.destroy()),
        options,
      ),
    MAX_TCP,
  );
}

function talk(socket: Socket, idle: Timer, options: DnsOptions): void {
  let unread = Buffer.alloc(0);
  const close = () => {
    idle.cancel();
    socket.destroy();
  };
  socket.once('close', close).once('end', () => void socket.end());
  // Whoever does not read the answers gets no more of them.
  socket.on('drain', () => void socket.resume());
  socket.on('data', (chunk: Buffer) => {
    unread = Buffer.concat([unread, chunk]);
    while (unread.length >= 2) {
      const length = unread.readUInt16BE(0);
      if (length > MAX_QUERY_BYTES) return close();
      if (unread.length < 2 + length) break;
      const answer = answerMessage(unread.subarray(2, 2 + length), options);
      unread = unread.subarray(2 + length);
      if (answer === undefined) return close();
      idle.restart();
      const size = Buffer.alloc(2);
      size.writeUInt16BE(answer.length);
      if (!socket.write(Buffer.concat([size, answer]))) socket.pause();
    }
    return undefined;
  });
}

function answerMessage(message: Buffer, options: DnsOptions): Buffer | undefined {
  const question = readQuestion(message);
  return question === undefined ? undefined : answerQuestion(question, options);
}

function answerQuestion(question: Question, { judge, record, answerWith }: DnsOptions): Buffer {
  if (question.class !== CLASS_IN) return answerTo(question, CODE.refused);
  const host = canonicalHost(question.name);
  if (host === undefined || isIP(host) !== 0) return answerTo(question, CODE.noSuchName);
  if (host === 'localhost' || host.endsWith('.localhost'))
    return answerTo(question, CODE.none, addressesFor(question, ['127.0.0.1', '::1']));
  const [denial, ...others] = DIRECT_PORTS.map((port) => judge.host(host, port));
  if (denial === undefined || others.includes(undefined))
    return answerTo(question, CODE.none, addressesFor(question, [answerWith]));
  record({
    decision: 'denied',
    host,
    via: 'dns',
    reason: denial.reason,
    ...(denial.never ? { never: true } : {}),
  });
  return answerTo(question, CODE.noSuchName);
}

/** Those of the type that is asked for, as bytes. */
function addressesFor({ type }: Question, addresses: readonly string[]): readonly Uint8Array[] {
  const family = type === TYPE.A ? 4 : type === TYPE.AAAA ? 6 : 0;
  return addresses.filter((address) => isIP(address) === family).map((address) => addressBytes(address));
}
