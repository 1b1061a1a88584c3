import type { RuntimeEnvironment } from '../environment.ts';

/** The token that a build's layers and containers carry: whose build it is, then which one. */
export function buildIdOf({ owner, randomId }: Pick<RuntimeEnvironment, 'owner' | 'randomId'>): string {
  return `${owner}-${randomId()}`;
}
