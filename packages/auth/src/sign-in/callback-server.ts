import { hash, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { closeServer, listen } from '@skep/core/fetch/listen.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import { formatDuration } from '@skep/core/time/duration.ts';
import type { SignInServices } from './port.ts';

/** The loopback server that the browser comes back to (RFC 8252 §7.3). */
export interface CallbackServer extends AsyncDisposable {
  readonly port: number;
  /**
   * The parameters of the one answer with this `state`, once `check` has accepted them. Requests with another state get an error
   * page and change nothing. Fails as `check`, with `auth/sign-in-timeout`, or with the signal's reason.
   */
  readonly answer: (expected: Expected) => Promise<URLSearchParams>;
}

interface Expected extends Pick<SignInServices, 'clock' | 'signal'> {
  readonly state: string;
  readonly timeoutMs: number;
  readonly check: (parameters: URLSearchParams) => URLSearchParams;
  /** Called when the server waits. */
  readonly begin: () => void;
}

const HOSTS = ['127.0.0.1', '::1'];
/** A machine without IPv6 says one of these. */
const NO_ADDRESS: ReadonlySet<string | undefined> = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EINVAL']);
const BUSY: ReadonlySet<string | undefined> = new Set(['EADDRINUSE', 'EACCES']);
const HEADERS_MS = 10_000;
const LAST_PAGE_MS = 500;

/** Listens on both loopback addresses; 0 picks a port. Fails with `auth/callback-port` where the port cannot be had. */
export async function openCallback(port: number, clock: Pick<Clock, 'after'>): Promise<CallbackServer> {
  let handle: Handler = (_url, response) => answerPage(response, 404, 'There is nothing here.');
  const servers: Server[] = [];
  const close = async (): Promise<void> => {
    // The page of the answer is on its way to the browser; a connection that it opened beforehand may stay silent.
    const cut = clock.after(LAST_PAGE_MS, () => {
      for (const server of servers) server.closeAllConnections();
    });
    await Promise.all(servers.map((server) => closeServer(server)));
    cut.cancel();
  };
  let bound = port;
  try {
    for (const host of HOSTS) {
      const server = createServer((request, response) => serve(request, response, handle));
      server.headersTimeout = HEADERS_MS;
      const got = await listen(server, host, bound).catch((error: unknown) => {
        if (host !== '127.0.0.1' && NO_ADDRESS.has(errnoOf(error))) return undefined;
        throw error;
      });
      if (got === undefined) continue;
      servers.push(server);
      bound = got;
    }
  } catch (cause) {
    await close();
    if (!BUSY.has(errnoOf(cause))) throw cause;
    const message = `port ${port}, to which the browser comes back, is not available`;
    throw new SkepError('auth/callback-port', { message, cause });
  }
  return {
    port: bound,
    [Symbol.asyncDispose]: close,
    answer: (expected) => waitFor(expected, (next) => (handle = next)),
  };
}

type Handler = (url: URL, response: ServerResponse) => void;

function serve(request: IncomingMessage, response: ServerResponse, handle: Handler): void {
  const url = URL.parse(request.url ?? '', 'http://localhost');
  if (url?.pathname !== '/callback') answerPage(response, 404, 'There is nothing here.');
  else if (request.method !== 'GET') answerPage(response, 405, 'This page can only be read.');
  else handle(url, response);
}

function waitFor(expected: Expected, listenWith: (handle: Handler) => void): Promise<URLSearchParams> {
  const { state, check, begin, clock, signal, timeoutMs } = expected;
  return new Promise((resolve, reject) => {
    let isOver = false;
    const end = (settle: () => void): void => {
      isOver = true;
      timer.cancel();
      signal?.removeEventListener('abort', abort);
      settle();
    };
    const abort = (): void => end(() => reject(asError(signal?.reason)));
    const late = (): void => end(() => reject(tooLate(timeoutMs)));
    const timer = clock.after(timeoutMs, late);
    signal?.addEventListener('abort', abort);
    listenWith(({ searchParams }, response) => {
      if (isOver) return answerPage(response, 400, 'This sign-in is over.');
      if (!hasState(searchParams, state))
        return answerPage(response, 400, 'This is not the sign-in that is waited for.');
      try {
        const accepted = check(searchParams);
        answerPage(
          response,
          200,
          'You are signed in. You can close this window and go back to the terminal.',
        );
        end(() => resolve(accepted));
      } catch (error) {
        const why = error instanceof SkepError ? error.message : 'the answer cannot be used';
        answerPage(response, 400, `You are not signed in: ${why}.`);
        end(() => reject(asError(error)));
      }
    });
    if (signal?.aborted === true) abort();
    else begin();
  });
}

function tooLate(timeoutMs: number): SkepError {
  const message = `nobody signed in within ${formatDuration(timeoutMs)}`;
  return new SkepError('auth/sign-in-timeout', { message });
}

function asError(reason: unknown): Error {
  return reason instanceof Error ? reason : new SkepError('run/cancelled');
}

/** Compared as hashes, which are of one length and tell nothing by the time that comparing takes. */
function hasState(parameters: URLSearchParams, state: string): boolean {
  const [given, ...more] = parameters.getAll('state');
  if (given === undefined || more.length > 0) return false;
  return timingSafeEqual(hash('sha256', given, 'buffer'), hash('sha256', state, 'buffer'));
}

const HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
};

function answerPage(response: ServerResponse, status: number, text: string): void {
  const page = `<!doctype html><html lang="en"><title>Skep</title><p>${escaped(text)}</p></html>\n`;
  response.writeHead(status, { ...HEADERS, Connection: 'close' }).end(page);
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/gu, (one) => `&#${one.charCodeAt(0)};`);
}
