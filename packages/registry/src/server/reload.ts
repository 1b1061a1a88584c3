import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '@skep/core/time/clock.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Log } from '@skep/core/log/log.ts';
import { openSignIn, type SignIn } from '../api/sign-in/sign-in.ts';
import { endSignIn, type SignInSlot } from '../api/sign-in/sign-in-slot.ts';
import type { PreparedAudit } from '../audit/audit-switch.ts';
import type { Catalogue } from './catalogue.ts';
import type { ServeAddresses } from './serve-addresses.ts';
import { configDifference } from '../config/config-difference.ts';
import type { RegistryConfig } from '../config/config.ts';
import type { Limits } from '../shape/limits.ts';
import { keysForRestart, limitsInForce } from './keys-for-restart.ts';
import type { Operations } from './operations.ts';

/** What of a running server a reload changes. */
export interface Reloadable {
  /** The newest that was taken over. */
  config: RegistryConfig;
  /** Those of it, as far as they can be taken over. */
  limits: Limits;
  /** The reload that runs. */
  reloading: Promise<unknown> | undefined;
  /** It serves, and was not asked to stop. */
  ready: boolean;
  operations: Operations | undefined;
  catalogue: Catalogue | undefined;
  readonly signIn: SignInSlot;
}

export interface ReloadServices {
  /** The one of the start. */
  readonly config: RegistryConfig;
  readonly addresses: Pick<ServeAddresses, 'isChosen'>;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
}

/** Takes over a new configuration, as `App.reload` says. */
export function reloading(
  options: ReloadServices,
  state: Reloadable,
): (config: RegistryConfig) => Promise<readonly string[]> {
  return async (config) => {
    // A server that stops, or is in the middle of another reload, has no place to put it.
    if (!state.ready || state.reloading !== undefined) throw new SkepError('registry/not-ready');
    const run = reloaded(config, options, state);
    state.reloading = run.catch(() => undefined);
    try {
      return await run;
    } finally {
      state.reloading = undefined;
    }
  };
}

/**
 * Undefined where nothing about sign-in has changed: it then keeps the keys and tokens it knows, also while an identity
 * provider is away. A file with authorities may have changed under its name.
 */
async function changedSignIn(
  { auth }: RegistryConfig,
  options: ReloadServices,
  { config: before }: Reloadable,
): Promise<SignIn | undefined> {
  const readsFile = auth.mode === 'oauth' && auth.providers.some((one) => one.caCertPath !== undefined);
  if (!readsFile && isDeepStrictEqual(auth, before.auth)) return undefined;
  return openSignIn(auth, options);
}

/** Everything that can fail is tried before anything changes, and taken back when the store refuses the rest. */
async function reloaded(
  config: RegistryConfig,
  options: ReloadServices,
  state: Reloadable,
): Promise<readonly string[]> {
  const { catalogue, operations } = state;
  if (catalogue === undefined || operations === undefined) throw new SkepError('registry/not-ready');
  if (config.auth.mode === 'anonymous' && !options.addresses.isChosen) {
    throw new SkepError('config/invalid', {
      message: 'auth.mode has become anonymous, and the registry is served on every interface',
      hint: 'restart it, and it serves this machine alone; or give --address',
    });
  }
  const signIn = await changedSignIn(config, options, state);
  let audit: PreparedAudit | undefined;
  try {
    audit = operations.auditable ? await operations.prepareAudit(config.audit) : undefined;
    await catalogue.reconcile(config);
  } catch (error) {
    if (signIn !== undefined) endSignIn(signIn);
    await audit?.discard();
    throw error;
  }
  if (signIn !== undefined) {
    state.signIn.replace(signIn);
    state.signIn.askProviders();
  }
  const before = state.config;
  state.config = config;
  state.limits = limitsInForce(options.config.limits, config.limits);
  await audit?.use().catch((err: unknown) => {
    options.log.error({ err }, 'the former audit log could not be closed');
  });
  const restart = keysForRestart(options.config, config, operations.auditable);
  operations.reloaded(configDifference(before, config), restart);
  return restart;
}
