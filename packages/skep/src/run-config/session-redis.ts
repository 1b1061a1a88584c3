import { readCaBundle } from '@skep/core/fetch/ca-bundle.ts';
import { readText } from '@skep/core/files/read-limited.ts';
import type { ProxyOptions } from '@skep/proxy/start.ts';
import { isOverTls, redisAddress } from '../settings/session-redis.ts';
import type { RunConfig } from './run-config.ts';

const MAX_PASSWORD_BYTES = 4 * 1024;

/**
 * Where a proxy shares its sessions; undefined where it is alone. Fails with `file/*` for a password that cannot be read, and as
 * `readCaBundle` for authorities.
 */
export async function sessionStoreOf({
  scaling_config: scaling,
  skep_ca_bundle: bundle,
}: Pick<RunConfig, 'scaling_config' | 'skep_ca_bundle'>): Promise<ProxyOptions['sessionStore']> {
  const saved = scaling?.session_redis;
  const found = saved && redisAddress(saved.address);
  if (found === undefined) return undefined;
  const file = saved?.password_file;
  return {
    address: found.address,
    database: saved?.db ?? found.database ?? 0,
    keyPrefix: saved?.key_prefix ?? 'skep:',
    password: file && (await passwordIn(file)),
    ca: bundle && isOverTls(found.address) ? await readCaBundle(bundle) : undefined,
  };
}

/** Without the line end that editors leave. */
export async function passwordIn(file: string): Promise<string> {
  const text = await readText(file, { maxBytes: MAX_PASSWORD_BYTES, what: 'password file' });
  return text.replace(/\r?\n$/u, '');
}
