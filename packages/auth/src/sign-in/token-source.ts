import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { SignInServices, SignInState, SignInStore, SignInTarget, TokenSource } from './port.ts';

/** How patiently a refresh is tried again, milliseconds (docs/reference/skep.md#variables). */
export interface RefreshPatience {
  readonly initialMs: number;
  readonly maxMs: number;
  readonly maxElapsedMs: number;
  readonly maxTries: number;
  readonly tickMs: number;
  readonly maxRetryingMs: number;
}

export const REFRESH_PATIENCE: RefreshPatience = {
  initialMs: 10_000,
  maxMs: 120_000,
  maxElapsedMs: 300_000,
  maxTries: 5,
  tickMs: 600_000,
  maxRetryingMs: 86_400_000,
};

export interface TokenSourceServices extends Pick<SignInServices, 'fetch' | 'clock' | 'log'> {
  /** In [0, 1). */
  readonly random: () => number;
  readonly patience?: RefreshPatience | undefined;
  /** What the ways without a refresh token need to ask again: the client's key, the assertion. */
  readonly target?: Pick<SignInTarget, 'clientKey' | 'assertion'> | undefined;
  readonly onState?: ((state: SignInState) => void) | undefined;
}

/** Tokens of the sign-in that `store` keeps under `key`. Nothing is read before the first call. */
export function createTokenSource(
  key: string,
  store: SignInStore,
  services: TokenSourceServices,
): TokenSource {
  void [store, services];
  throw new SkepError('usage/not-available', { message: `tokens of ${key}` });
}
