import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { SkepError } from '@skep/core/errors/skep-error.ts';

/** One request of a package manager to the gateway. */
export interface GatewayRequest {
  /** Decoded, without the slash in front. */
  readonly path: string;
  readonly accept: string | undefined;
  readonly response: ServerResponse;
  /** Aborts when the gateway ends. */
  readonly signal: AbortSignal;
}

/** What a gateway of one kind of package answers. Throws a SkepError for what could not be had. */
export type Serve = (request: GatewayRequest) => Promise<void>;

/** Package managers ask less at once; the code of a package that is built asks as much as it likes, and each answer takes memory here. */
const MAX_AT_ONCE = 64;
const MAX_CONNECTIONS = 1_024;
/** As many failures as are remembered. */
const MAX_FAILURES = 1_000;

/**
 * The one thing that a confined package manager can reach: a server on a Unix socket that answers GET alone. What it has
 * is decided by `serve`, which takes no address from inside, so whoever asks can reach no other host.
 */
export class PackageGateway {
  readonly #server = createServer((request, response) => void this.#answer(request, response));
  readonly #serve: Serve;
  readonly #ending = new AbortController();
  /** By requested path. Package managers ask a second time, so a failure may be over. */
  readonly #failures = new Map<string, SkepError>();
  readonly #waiting: (() => void)[] = [];
  #free = MAX_AT_ONCE;

  constructor(serve: Serve) {
    this.#serve = serve;
    this.#server.maxConnections = MAX_CONNECTIONS;
  }

  /** Listens on a Unix socket. */
  async listen(socket: string): Promise<void> {
    this.#server.listen(socket);
    await once(this.#server, 'listening');
  }

  /** The first thing that went wrong and stayed so, in words that name the real registry. */
  get failure(): SkepError | undefined {
    return this.#failures.values().next().value;
  }

  /** Ends all connections. Idempotent. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort(new SkepError('runtime/aborted'));
    if (!this.#server.listening) return;
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #answer({ method, url = '', headers }: IncomingMessage, response: ServerResponse): Promise<void> {
    await this.#turn();
    try {
      const path = decodeURIComponent(url.slice(1));
      const { signal } = this.#ending;
      if (method === 'GET') await this.#serve({ path, accept: headers.accept, response, signal });
      else response.writeHead(405).end();
      this.#failures.delete(url);
    } catch (error) {
      const known = error instanceof SkepError ? error : undefined;
      const isKept = this.#failures.size < MAX_FAILURES && !this.#ending.signal.aborted;
      if (known && isKept) this.#failures.set(url, known);
      if (response.headersSent) response.destroy();
      else response.writeHead(known?.code === 'runtime/package-not-found' ? 404 : 502).end('{}');
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }

  async #turn(): Promise<void> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => void this.#waiting.push(resolve));
  }
}
