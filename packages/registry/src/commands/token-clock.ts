import type { Clock as TokenClock } from '@skep/auth/token/clock.ts';
import { sleep } from '@skep/core/fetch/retry.ts';
import type { Host } from '../host.ts';

/** Tokens are checked by the clock and chance of the host. */
export function tokenClockOf({ clock, random }: Pick<Host, 'clock' | 'random'>): TokenClock {
  return { now: () => Date.parse(clock.now()), sleep, random };
}
