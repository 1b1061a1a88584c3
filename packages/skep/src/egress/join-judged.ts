import type { Socket } from 'node:net';
import type { Clock } from '@skep/core/time/clock.ts';
import type { Authority } from './host-name.ts';
import { breakTogether, passOn } from './join-sockets.ts';
import { peek } from './peek.ts';
import type { Reach } from './reach.ts';

export interface JudgedJoin {
  readonly client: Socket;
  /** What the client has sent already. */
  readonly head: Buffer;
  readonly server: Socket;
  readonly asked: Authority;
  readonly reach: Reach;
  readonly clock: Clock;
}

/**
 * Joins two connections. Where the client begins TLS and names a host, the policy must allow that host at this port too:
 * servers that answer for many hosts go by that name. What the server sends passes from the beginning, for in some
 * protocols it speaks first.
 */
export async function joinJudged({ client, head, server, asked, reach, clock }: JudgedJoin): Promise<void> {
  passOn(server, client);
  breakTogether(client, server);
  const { first, bytes, isAtEnd } = await peek({ client, head, clock });
  const name = first.kind === 'hello' ? first.name : undefined;
  if (first.kind === 'broken' || (name !== undefined && !reach.allowsName(name, asked))) {
    server.unpipe(client);
    denyTls(client);
    client.once('close', () => void server.destroy());
  } else if (isAtEnd) server.end(bytes);
  else {
    server.write(bytes);
    client.pipe(server);
  }
}

/** A fatal alert `access_denied` (RFC 8446 §6.2), so that the client can tell this from a network that is broken. */
const ACCESS_DENIED = Uint8Array.from([21, 3, 3, 0, 2, 2, 49]);

/** Ends a connection on which TLS was begun. */
export function denyTls(client: Socket): void {
  if (!client.destroyed) client.write(ACCESS_DENIED);
  client.destroySoon();
}
