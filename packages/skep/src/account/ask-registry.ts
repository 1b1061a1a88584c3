import { SkepError } from '@skep/core/errors/skep-error.ts';
import { badStatus, saidIn } from '@skep/core/fetch/client.ts';
import { readLimited } from '@skep/core/fetch/read-limited.ts';
import { openRequester, withDeadline, type StreamedAnswer } from '@skep/core/fetch/requester.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { explainedRefusal } from './refusal.ts';
import { isAt } from './registry-address.ts';
import { requireProtected } from './signed-client.ts';
import type { RegistryTokens } from './tokens.ts';

export interface RegistryRequest {
  readonly method?: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly url: string;
  /** JSON text. */
  readonly body?: string;
  readonly signal: AbortSignal;
}

/** Requests to one server of registries, saying who asks where that is known. */
export interface RegistryServer {
  readonly server: string;
  readonly proof: RegistryTokens['proof'] | 'nothing';
  /**
   * The body of a success as JSON, undefined where it has none. Follows no redirect. Fails with the `fetch/…` codes, and as
   * `explainedRefusal` says.
   */
  readonly ask: (request: RegistryRequest) => Promise<unknown>;
  /** Idempotent. */
  readonly close: () => void;
}

export interface RegistryServerOptions {
  readonly server: string;
  readonly tokens: RegistryTokens | undefined;
  readonly allowPrivate: boolean;
  readonly version: string;
}

const TIMEOUT_MS = 30_000;
const MAX_BYTES = 16 * 1024 * 1024;

export function openRegistryServer(options: RegistryServerOptions): RegistryServer {
  const { server, tokens, allowPrivate, version } = options;
  const requester = openRequester({ allowPrivate });
  const proof = tokens?.proof ?? 'nothing';

  async function askOnce(request: RegistryRequest, token: string | undefined): Promise<unknown> {
    const url = new URL(request.url);
    const headers = {
      'user-agent': `skep/${version}`,
      accept: 'application/json',
      'accept-encoding': 'identity',
      ...(request.body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    };
    const { method = 'GET', body, signal } = request;
    return withDeadline({ url, timeoutMs: TIMEOUT_MS, signal }, async (inTime) => {
      const sending = { method, body, showTo: () => ({ headers }), signal: inTime } as const;
      return readAnswer(await requester.send(url, { ...sending, redirects: 'answer' }));
    });
  }

  async function askWithToken(
    request: RegistryRequest,
    { token, refused }: RegistryTokens,
  ): Promise<unknown> {
    requireProtected(request.url);
    const first = await token();
    try {
      return await askOnce(request, first);
    } catch (error) {
      const other = isUnauthorized(error) ? await refused(first) : undefined;
      if (other === undefined) throw error;
      return askOnce(request, other);
    }
  }

  return {
    server,
    proof,
    async ask(request) {
      if (!isAt(request.url, server))
        throw new SkepError('internal/bug', { message: 'a request to another address' });
      try {
        return await (tokens === undefined ? askOnce(request, undefined) : askWithToken(request, tokens));
      } catch (error) {
        throw explainedRefusal(error, server, proof);
      }
    },
    close() {
      tokens?.close();
      requester.close();
    },
  };
}

function isUnauthorized(error: unknown): boolean {
  return error instanceof SkepError && error.detail['status'] === 401;
}

async function readAnswer({ status, headers, body, drop, url }: StreamedAnswer): Promise<unknown> {
  if (status < 200 || status > 299) {
    const said = await saidIn(body);
    drop();
    throw badStatus({ url, status, said });
  }
  const bytes = await readLimited(body, MAX_BYTES, headers['content-length']);
  if (bytes.length === 0) return undefined;
  const value = parsedJson(bytes.toString('utf8'));
  if (value !== undefined) return value;
  throw new SkepError('fetch/not-json', {
    message: `"${url.origin}${url.pathname}" did not answer with JSON`,
  });
}
