import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { expect, it } from 'vitest';
import { ANONYMOUS_AUTH, oauthWith } from '../api/api.fixture.ts';
import type { AuthConfig } from '../config/auth.ts';
import type { RegistryConfig } from '../config/config.ts';
import { type Reloadable, reloading } from './reload.ts';

const OAUTH = oauthWith({ kind: 'auth-only' });
const withAuth = (auth: AuthConfig) => ({ auth }) as unknown as RegistryConfig;

/** How a reload without sign-in ends, in a server with sign-in whose store refuses everything. */
function reloadedWithoutSignIn(isChosen: boolean): Promise<unknown> {
  const state = {
    config: withAuth(OAUTH),
    ready: true,
    catalogue: { reconcile: () => Promise.reject(new Error('asked the store')) },
    operations: { auditable: false },
  } as unknown as Reloadable;
  const services = {
    config: withAuth(OAUTH),
    addresses: { isChosen },
    clock: manualClock(),
    random: () => 0,
    log: silentLog,
  };
  return reloading(services, state)(withAuth(ANONYMOUS_AUTH));
}

it('does not end sign-in where the server listens on every interface and nobody has chosen that', async () => {
  await expect(reloadedWithoutSignIn(false)).rejects.toThrow('auth.mode has become anonymous');
  await expect(reloadedWithoutSignIn(true)).rejects.toThrow('asked the store');
});
