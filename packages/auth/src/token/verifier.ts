import type { TokenCache } from './cache.ts';
import { invalid, type TokenOutcome } from './outcome.ts';
import type { TokenProvider } from './provider.ts';

/** Checks tokens against all identity providers. */
export interface TokenVerifier {
  /** Does not throw for any token. */
  readonly verify: (token: string) => Promise<TokenOutcome>;
  /** What `verify` would find without asking anybody; for the fast path of a request. */
  readonly known: (token: string) => TokenOutcome | undefined;
  /** Asks every provider for its keys. Gives the names of those that could not be asked; they have logged why. */
  readonly ready: () => Promise<string[]>;
  /** Idempotent. */
  readonly close: () => void;
}

/**
 * Providers are tried in order, the first that accepts a token wins. Where none does and one that might have could not be
 * asked, the outcome is `unavailable`: during an outage its users are not told that their tokens are bad. A provider
 * that did not issue the token (other `iss`) is never asked and so never in the way. Requests with the same new token
 * share one check.
 */
export function createVerifier(providers: readonly TokenProvider[], cache: TokenCache): TokenVerifier {
  const running = new Map<string, Promise<TokenOutcome>>();
  const check = async (token: string): Promise<TokenOutcome> => {
    try {
      const outcome = await firstAnswer(providers, token);
      cache.set(token, outcome);
      return outcome;
    } finally {
      running.delete(token);
    }
  };
  return {
    known: (token) => cache.get(token),
    async verify(token) {
      const known = cache.get(token);
      if (known !== undefined) return known;
      const shared = running.get(token) ?? check(token);
      running.set(token, shared);
      return shared;
    },
    async ready() {
      const asked = await Promise.all(
        providers.map(async ({ name, ready }) => ((await ready()) ? [] : [name])),
      );
      return asked.flat();
    },
    close() {
      cache.clear();
      for (const provider of providers) provider.close();
    },
  };
}

async function firstAnswer(providers: readonly TokenProvider[], token: string): Promise<TokenOutcome> {
  const refusals: TokenOutcome[] = [];
  for (const provider of providers) {
    const outcome = await provider.check(token);
    if (outcome.kind === 'identity') return outcome;
    refusals.push({ ...outcome, provider: provider.name });
  }
  return refusals.find((one) => one.kind === 'unavailable') ?? mostTelling(refusals);
}

/** The reason of the provider that came furthest: "not my token" says less than "expired". */
function mostTelling(refusals: readonly TokenOutcome[]): TokenOutcome {
  const telling = refusals.find(
    (one) => one.kind === 'invalid' && one.reason !== 'wrong-issuer' && one.reason !== 'opaque-not-accepted',
  );
  const [first] = refusals;
  // Nobody's token is no provider's failure.
  return telling ?? invalid(first?.kind === 'invalid' ? first.reason : 'malformed');
}
