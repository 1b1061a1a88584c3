import { SkepError } from '@skep/core/errors/skep-error.ts';
import { statusOf, type Client, type GetOptions } from '@skep/core/fetch/client.ts';
import { explainedRefusal } from './refusal.ts';
import { isAt, shownServer } from './registry-address.ts';
import type { RegistryTokens } from './tokens.ts';

const LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/** Fails with `catalog-source/refused` where whoever listens on the way would read the token. */
export function requireProtected(address: string): void {
  const url = URL.parse(address);
  if (url?.protocol === 'https:' || LOOPBACK.has(url?.hostname ?? '')) return;
  throw new SkepError('catalog-source/refused', {
    message: `${shownServer(address)} is asked in the clear, and a token would be read by whoever listens`,
    hint: 'use the https address of the registry',
  });
}

/**
 * A client whose requests to an address say who asks: always, or only where the server answered 401. They go nowhere else and,
 * with a token, follow no redirect. A token that is refused is replaced once, where there is another. Nobody waits longer for
 * one than for an answer. Fails as `client` does, and as `explainedRefusal` says.
 */
export function signedClient(
  client: Client,
  address: string,
  tokens: RegistryTokens,
  shown: 'always' | 'when asked' = 'always',
): Client {
  const askSigned = async <T>(
    url: string,
    given: GetOptions | undefined,
    send: (options: GetOptions) => Promise<T>,
  ): Promise<T> => {
    requireProtected(url);
    if (!isAt(url, address)) throw new SkepError('internal/bug', { message: 'a token for another address' });
    const withToken = (token: string): Promise<T> =>
      send({
        ...given,
        redirects: 'refuse',
        headers: { ...given?.headers, authorization: `Bearer ${token}` },
      });
    try {
      const token = await inTime(tokens.token(), given?.signal);
      try {
        return await withToken(token);
      } catch (error) {
        if (statusOf(error) !== 401) throw error;
        const other = await inTime(tokens.refused(token), given?.signal);
        if (other === undefined) throw error;
        return await withToken(other);
      }
    } catch (error) {
      throw explainedRefusal(error, address, tokens.proof);
    }
  };
  const ask: typeof askSigned = async (url, given, send) => {
    if (shown === 'always') return askSigned(url, given, send);
    try {
      return await send({ ...given });
    } catch (error) {
      if (statusOf(error) !== 401) throw error;
    }
    return askSigned(url, given, send);
  };
  return {
    get: (url, options) => ask(url, options, (signed) => client.get(url, signed)),
    getJson: (url, options) => ask(url, options, (signed) => client.getJson(url, signed)),
    async close() {
      tokens.close();
      await client.close();
    },
  };
}

/** What a token takes goes on, because what comes of it must be kept; only nobody waits for it. */
async function inTime<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  const { promise: ended, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([work, ended]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
