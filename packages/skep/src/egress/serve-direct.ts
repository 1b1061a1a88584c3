import type { Server, Socket } from 'node:net';
import { acceptFrom } from './accept.ts';
import { canonicalHost, parseAuthority } from './host-name.ts';
import { denyTls, joinJudged } from './join-judged.ts';
import { peek } from './peek.ts';
import { judgedRequests, type ServeOptions, type Target } from './serve-proxy.ts';
import { serveHttp } from './serve-http.ts';
import type { IncomingMessage } from 'node:http';

/** Until a client that connected says something. */
const FIRST_BYTE_MS = 30_000;

/**
 * Serves programs that know no proxy and were led here by the answer to a question for a name: the connection itself
 * names the host. For TLS that is the name in the ClientHello (SNI); what names none is closed.
 */
export function serveDirectTls(listener: Server, port: number, options: ServeOptions): void {
  acceptFrom(listener, (client) => {
    lead(client, port, options).catch(() => void client.destroy());
  });
}

async function lead(client: Socket, port: number, { reach, clock }: ServeOptions): Promise<void> {
  const { first, bytes } = await peek({ client, clock, firstByteMs: FIRST_BYTE_MS });
  const name = first.kind === 'hello' ? first.name : undefined;
  const host = name === undefined ? undefined : canonicalHost(name);
  if (host === undefined) {
    // A connection that was only opened, as a check for life does, asked for nothing.
    if (bytes.length > 0) reach.denyUnnamed(port);
    denyTls(client);
    return;
  }
  const asked = { host, port };
  const reached = await reach.open(asked, 'direct');
  if ('socket' in reached)
    await joinJudged({ client, head: bytes, server: reached.socket, asked, via: 'direct', reach, clock });
  else denyTls(client);
}

/** The same for plain HTTP, where every request names its host in `Host`. */
export function serveDirectHttp(listener: Server, port: number, options: ServeOptions): void {
  serveHttp(
    listener,
    options.clock,
    judgedRequests(options, 'direct', (req) => directTarget(req, port)),
    true,
  );
}

function directTarget(req: IncomingMessage, port: number): Target | undefined {
  const { url = '', headersDistinct } = req;
  const [host, ...others] = headersDistinct['host'] ?? [];
  if (host === undefined || others.length > 0 || !(url.startsWith('/') || url === '*')) return undefined;
  const asked = parseAuthority(host, port);
  return asked?.port === port ? { asked, path: url } : undefined;
}
