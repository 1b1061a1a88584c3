import type { Socket } from 'node:net';

const HANDSHAKE_RECORD = 0x16;
const SERVER_HELLO = 2;
/** In place of a random number it means that the hello is to be sent again (RFC 8446 §4.1.3). */
const RETRY = Buffer.from('cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c', 'hex');
/** Where it stands in the first record of a server. */
const RANDOM_AT = 11;

/**
 * Whether the next message of a server, which flows already, asks for another ClientHello (RFC 8446 §4.1.4). False where
 * it says anything else or nothing more. Never fails.
 */
export function asksAgain(server: Socket): Promise<boolean> {
  return new Promise((resolve) => {
    let bytes = Buffer.alloc(0);
    const done = (asks: boolean) => {
      server.off('data', look).off('end', no).off('close', no);
      resolve(asks);
    };
    const no = () => done(false);
    const look = (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
      if (bytes[0] !== HANDSHAKE_RECORD) return no();
      const random = bytes.subarray(RANDOM_AT, RANDOM_AT + RETRY.length);
      if (random.length === RETRY.length) done(bytes[5] === SERVER_HELLO && random.equals(RETRY));
      return undefined;
    };
    if (server.readableEnded || server.destroyed) resolve(false);
    else server.on('data', look).once('end', no).once('close', no);
  });
}
