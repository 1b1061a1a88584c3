import { once } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { text } from 'node:stream/consumers';
import type { HttpBackend, RemoteAccess } from '../backend/backend.ts';
import { ownAuthority } from './own-authority.ts';

/** Vouches for the servers elsewhere. */
export const TRUSTED = ownAuthority();

export interface Elsewhere extends AsyncDisposable {
  readonly origin: string;
  readonly requests: {
    readonly line: string;
    readonly headers: IncomingHttpHeaders;
    readonly body: string;
  }[];
  at(address: string, more?: Partial<RemoteAccess>, kind?: HttpBackend['kind']): HttpBackend;
}

/** A server over TLS that answers as `answer` does. */
export async function elsewhere(
  answer: (req: IncomingMessage, res: ServerResponse) => void = (_req, res) => void res.end('{}'),
): Promise<Elsewhere> {
  const requests: Elsewhere['requests'] = [];
  const server = createServer(TRUSTED, (req, res) => {
    void text(req).then((body) => {
      requests.push({ line: `${req.method ?? ''} ${req.url ?? ''}`, headers: req.headers, body });
      answer(req, res);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const origin = `https://localhost:${typeof address === 'object' ? (address?.port ?? 0) : 0}`;
  return {
    origin,
    requests,
    at: (path, more, kind = 'http') => ({
      kind,
      target: new URL(path, origin),
      remote: { allowPrivate: true, ca: [TRUSTED.cert], headers: {}, ...more },
    }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
