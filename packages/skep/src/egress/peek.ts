import type { Socket } from 'node:net';
import type { Clock } from '@skep/core/time/clock.ts';
import { type FirstBytes, readFirstBytes } from './client-hello.ts';

export interface Peeked {
  readonly first: Exclude<FirstBytes, { kind: 'more' }>;
  /** All that was read. */
  readonly bytes: Buffer;
  /** The other side sends nothing more. */
  readonly isAtEnd: boolean;
}

interface PeekOptions {
  readonly client: Socket;
  /** What was read of it before. */
  readonly head?: Buffer;
  /** Says what the bytes so far are; those of a connection that begins where it is absent. */
  readonly read?: (bytes: Buffer) => FirstBytes;
  readonly clock: Clock;
  /** How long nothing at all may come; without it, for ever. */
  readonly firstByteMs?: number;
}

/** From the first byte of a ClientHello to its last. */
const HELLO_MS = 15_000;

/** Reads until it is clear what the first bytes are, and pauses. Too late, cut off or closed is `broken`. Never fails. */
export function peek({
  client,
  head,
  read = readFirstBytes,
  clock,
  firstByteMs,
}: PeekOptions): Promise<Peeked> {
  return new Promise((resolve) => {
    let bytes = Buffer.alloc(0);
    const done = (first: Peeked['first'], isAtEnd = false) => {
      timer?.cancel();
      client.off('data', look).off('end', ended).off('close', broken).pause();
      resolve({ first, bytes, isAtEnd });
    };
    const broken = () => done({ kind: 'broken' });
    const ended = () => done({ kind: bytes.length === 0 ? 'other' : 'broken' }, true);
    let timer = firstByteMs === undefined ? undefined : clock.after(firstByteMs, broken);
    const look = (chunk: Buffer) => {
      if (bytes.length === 0) {
        timer?.cancel();
        timer = clock.after(HELLO_MS, broken);
      }
      bytes = Buffer.concat([bytes, chunk]);
      const first = read(bytes);
      if (first.kind !== 'more') done(first);
    };
    if (client.destroyed) {
      broken();
      return;
    }
    client.on('data', look).on('end', ended).on('close', broken).resume();
    if (head !== undefined && head.length > 0) look(head);
  });
}
