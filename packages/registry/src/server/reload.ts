import { isDeepStrictEqual } from 'node:util';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { openSignIn, type SignIn } from '../api/sign-in/sign-in.ts';
import type { PreparedAudit } from '../audit/audit-switch.ts';
import { configDifference } from '../config/config-difference.ts';
import type { RegistryConfig } from '../config/load.ts';
import { configShape } from '../config/shape.ts';
import { limitsShape, type Limits } from '../shape/limits.ts';
import { differingPaths, keptUntilRestart } from '../shape/restart.ts';
import type { AppOptions } from './app-options.ts';
import type { Running } from './running.ts';

type ReloadOptions = Pick<AppOptions, 'config' | 'addresses' | 'clock' | 'random' | 'log'>;

/** Takes over a new configuration, as `App.reload` says; `options` hold the one of the start. */
export async function reload(
  config: RegistryConfig,
  options: ReloadOptions,
  running: Running,
): Promise<readonly string[]> {
  // A server that stops, or is in the middle of another reload, has no place to put it.
  if (!running.isReady || running.reloading !== undefined) throw new SkepError('registry/not-ready');
  const run = takeOver(config, options, running);
  running.reloading = run.catch(() => undefined);
  try {
    return await run;
  } finally {
    running.reloading = undefined;
  }
}

/**
 * Undefined where nothing about sign-in has changed: it then keeps the keys and tokens it knows, also while an identity
 * provider is away. A file with authorities may have changed under its name.
 */
async function changedSignIn(
  { auth }: RegistryConfig,
  options: ReloadOptions,
  { config: before }: Running,
): Promise<SignIn | undefined> {
  const readsFile = auth.mode === 'oauth' && auth.providers.some((one) => one.caCertPath !== undefined);
  if (!readsFile && isDeepStrictEqual(auth, before.auth)) return undefined;
  return openSignIn(auth, options);
}

/** Everything that can fail is tried before anything changes, and taken back when the store refuses the rest. */
async function takeOver(
  config: RegistryConfig,
  options: ReloadOptions,
  running: Running,
): Promise<readonly string[]> {
  const { catalogue, operations } = running;
  if (catalogue === undefined || operations === undefined) throw new SkepError('registry/not-ready');
  if (config.auth.mode === 'anonymous' && !options.addresses.isChosen) {
    throw new SkepError('config/invalid', {
      message: 'auth.mode has become anonymous, and the registry is served on every interface',
      hint: 'restart it, and it serves this machine alone; or give --address',
    });
  }
  const signIn = await changedSignIn(config, options, running);
  let audit: PreparedAudit | undefined;
  try {
    audit = operations.auditable ? await operations.prepareAudit(config.audit) : undefined;
    await catalogue.reconcile(config);
  } catch (error) {
    signIn?.close();
    await audit?.discard();
    throw error;
  }
  if (signIn !== undefined) {
    running.signIn.replace(signIn);
    running.signIn.askProviders();
  }
  const before = running.config;
  running.config = config;
  running.limits = limitsInForce(options.config.limits, config.limits);
  await audit?.use().catch((err: unknown) => {
    options.log.error({ err }, 'the former audit log could not be closed');
  });
  const restart = keysForRestart(options.config, config, operations.auditable);
  operations.reloaded(configDifference(before, config), restart);
  return restart;
}

/** Keys in which a new configuration differs from the one of the start and that a running server cannot take over. */
export function keysForRestart(
  started: RegistryConfig,
  next: RegistryConfig,
  auditable: boolean,
): readonly string[] {
  const kept = differingPaths(keptUntilRestart(configShape), [started, next]);
  return auditable || next.audit === 'off' ? kept : [...kept, 'audit'];
}

/** The limits of a new configuration, but those of the start where a running server keeps them. */
export function limitsInForce(started: Limits, next: Limits): Limits {
  const kept = keptUntilRestart(limitsShape).map(([name = '']) => [name, Reflect.get(started, name)]);
  return Object.freeze({ ...next, ...Object.fromEntries(kept) });
}
