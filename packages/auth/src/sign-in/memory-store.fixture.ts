import type { KeptSignIn, SignInStore } from './port.ts';

/** A sign-in at servers that are nowhere. */
export const SOME_SIGN_IN: KeptSignIn = {
  version: 1,
  way: 'browser',
  resource: 'https://mcp.invalid/mcp',
  issuer: 'https://issuer.invalid',
  tokenEndpoint: 'https://issuer.invalid/token',
  client: { id: 'mine', authMethod: 'none' },
  scopes: ['a'],
  mayBePrivate: false,
};

/** Sign-ins in memory, for tests. `change` runs alone per key. */
export function memoryStore(
  kept: Map<string, KeptSignIn> = new Map(),
): SignInStore & { kept: Map<string, KeptSignIn> } {
  const turns = new Map<string, Promise<unknown>>();
  return {
    kept,
    read: (key) => Promise.resolve(kept.get(key)),
    change(key, next) {
      const turn = (turns.get(key) ?? Promise.resolve()).then(async () => {
        const changed = await next(kept.get(key));
        if (changed === undefined) kept.delete(key);
        else kept.set(key, changed);
        return changed;
      });
      turns.set(
        key,
        turn.catch(() => undefined),
      );
      return turn;
    },
  };
}
