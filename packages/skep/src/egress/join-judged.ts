import type { Socket } from 'node:net';
import type { Clock } from '@skep/core/time/clock.ts';
import { readNextHello } from './client-hello.ts';
import type { Decision } from './decision.ts';
import type { Authority } from './host-name.ts';
import { breakTogether, passOn } from './join-sockets.ts';
import { peek, type Peeked } from './peek.ts';
import type { Reach } from './reach.ts';
import { asksAgain } from './retry-request.ts';

export interface JudgedJoin {
  readonly client: Socket;
  /** What the client has sent already. */
  readonly head: Buffer;
  readonly server: Socket;
  readonly asked: Authority;
  readonly via: Decision['via'];
  readonly reach: Reach;
  readonly clock: Clock;
}

/**
 * Joins two connections. Where the client begins TLS and names a host, the policy must allow that host at this port too:
 * servers that answer for many hosts go by that name, and by that of a second hello where they ask for one. What the
 * server sends passes from the beginning, for in some protocols it speaks first.
 */
export async function joinJudged({
  client,
  head,
  server,
  asked,
  via,
  reach,
  clock,
}: JudgedJoin): Promise<void> {
  passOn(server, client);
  breakTogether(client, server);
  const refuses = ({ first }: Peeked): boolean =>
    first.kind === 'broken' ||
    (first.kind === 'hello' && first.name !== undefined && !reach.allowsName(first.name, asked, via));
  const begun = await peek({ client, head, clock });
  if (refuses(begun)) return refuse(client, server);
  let { bytes: unsent, isAtEnd } = begun;
  if (begun.first.kind === 'hello') {
    server.write(unsent.subarray(0, begun.first.length));
    // What a client sends before an answer waits for it: it could be the second hello.
    unsent = unsent.subarray(begun.first.length);
    if (await asksAgain(server)) {
      const again = await peek({ client, head: unsent, read: readNextHello, clock });
      if (refuses(again)) return refuse(client, server);
      ({ bytes: unsent, isAtEnd } = again);
    }
  }
  server.write(unsent);
  if (isAtEnd) server.end();
  else client.pipe(server);
}

function refuse(client: Socket, server: Socket): void {
  server.unpipe(client);
  denyTls(client);
  client.once('close', () => void server.destroy());
}

/** A fatal alert `access_denied` (RFC 8446 §6.2), so that the client can tell this from a network that is broken. */
const ACCESS_DENIED = Uint8Array.from([21, 3, 3, 0, 2, 2, 49]);

/** Ends a connection on which TLS was begun. */
export function denyTls(client: Socket): void {
  if (!client.destroyed) client.write(ACCESS_DENIED);
  client.destroySoon();
}
