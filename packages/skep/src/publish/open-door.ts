import { SkepError } from '@skep/core/errors/skep-error.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { openRegistryServer } from '../account/ask-registry.ts';
import {
  isAt,
  refuseClear,
  registryAddressIn,
  registryUrl,
  splitAddress,
} from '../account/registry-address.ts';
import { REGISTRY, tokensFor, type AccountSurroundings } from '../account/tokens.ts';
import { loadAppConfig, type AppConfig } from '../config/app-config.ts';
import type { Door } from './registry-doors.ts';

/** Flags of every command that changes what a registry holds. */
export const doorSettings = settingsOf({ group: 'Registry' }, [
  flag(
    'string',
    'registry',
    'Another registry than the one in use: its address, or its name on that server',
    {
      env: REGISTRY,
      placeholder: 'address',
    },
  ),
  flag('bool', 'allow-private-ip', 'It may be at a private address or plain http', { default: false }),
]);

interface DoorFlags {
  readonly registry: string | undefined;
  readonly allowPrivateIp: boolean;
}

/**
 * Opens the registry that is named, or the one in use; undefined where there is none. Whoever asked closes it. Fails with
 * `usage/invalid-value` and `catalog-source/refused`.
 */
export async function openDoor(
  flags: DoorFlags,
  around: AccountSurroundings,
): Promise<(Door & { readonly close: () => void }) | undefined> {
  const config = await loadAppConfig(around.places);
  const text = addressOf(flags.registry, config);
  if (text === undefined) return undefined;
  const url = registryAddressIn(text);
  const inUse =
    config.registryApiUrl !== undefined && isAt(text, splitAddress(new URL(config.registryApiUrl)).server);
  const allowPrivate = flags.allowPrivateIp || (inUse && config.allowPrivateRegistryIp);
  refuseClear(url, 'a registry', allowPrivate);
  const address = splitAddress(url);
  const { registryAuthServer } = config;
  const tokens = await tokensFor(text, { registryAuthServer, named: flags.registry }, around);
  const { version } = around.program;
  const registry = openRegistryServer({ server: address.server, tokens, allowPrivate, version });
  const { signal, clock = systemClock } = around;
  const pause = (ms: number): Promise<void> => clock.sleep(ms, signal);
  return { address, registry, signal, pause, close: () => registry.close() };
}

/** As `openDoor`; fails with `publish/no-registry` where there is none. */
export async function requireDoor(
  flags: DoorFlags,
  around: AccountSurroundings,
): Promise<Door & { readonly close: () => void }> {
  const door = await openDoor(flags, around);
  if (door !== undefined) return door;
  throw new SkepError('publish/no-registry');
}

/** A bare name is that of a registry beside the one in use. */
function addressOf(given: string | undefined, config: AppConfig): string | undefined {
  const { registryApiUrl, registryAuthServer } = config;
  if (given === undefined) return registryApiUrl;
  const server =
    registryAuthServer ??
    (registryApiUrl === undefined ? undefined : splitAddress(new URL(registryApiUrl)).server);
  return server !== undefined && /^[a-z0-9-]+$/u.test(given) ? registryUrl(server, given) : given;
}
