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
 * A client whose requests to an address say who asks. They go nowhere else and follow no redirect. A token that is refused is
 * replaced once, where there is another. Fails as `client` does, and as `explainedRefusal` says.
 */
export function signedClient(client: Client, address: string, tokens: RegistryTokens): Client {
  const ask = async <T>(
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
      const token = await tokens.token();
      try {
        return await withToken(token);
      } catch (error) {
        if (statusOf(error) !== 401) throw error;
        const other = await tokens.refused(token);
        if (other === undefined) throw error;
        return await withToken(other);
      }
    } catch (error) {
      throw explainedRefusal(error, address, tokens.proof);
    }
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
