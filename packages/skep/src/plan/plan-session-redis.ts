import { resolve } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { passwordIn } from '../run-config/session-redis.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { RunValues } from '../settings/run-settings.ts';
import { isKeyPrefix, isOverTls, NO_REDIS_ADDRESS, redisAddress } from '../settings/session-redis.ts';

type SharedSessionsConfig = Pick<RunConfig, 'scaling_config'> & { readonly skep_ca_bundle?: string };

/**
 * What `--session-redis` says, as it is saved, with the authorities that its certificate may be of. Fails with `usage/*` for what no proxy could be started with, and with `file/*` for
 * a password that cannot be read.
 */
export async function planSessionRedis(values: RunValues, cwd: string): Promise<SharedSessionsConfig> {
  const { sessionRedis: text, sessionRedisKeyPrefix: prefix, sessionRedisPasswordFile: file } = values;
  const { transport, skepCaBundle: bundle } = values;
  if (text === undefined) {
    const idle = prefix === undefined ? file && 'password-file' : 'key-prefix';
    if (idle === undefined || idle === '') return {};
    throw new SkepError('usage/conflict', {
      message: `--session-redis-${idle} is for --session-redis, which is missing`,
      hint: 'give --session-redis, or leave it out',
    });
  }
  const found = redisAddress(text);
  if (found === undefined)
    throw new SkepError('usage/invalid-value', {
      message: `--session-redis ${NO_REDIS_ADDRESS}`,
      hint: 'put the password into a file, and give --session-redis-password-file',
    });
  if (prefix !== undefined && !isKeyPrefix(prefix))
    throw new SkepError('usage/invalid-value', {
      message: '--session-redis-key-prefix is not at most 128 visible characters',
    });
  if (transport === 'stdio' || transport === 'sse') throw notShared(transport);
  const passwordFile = file === undefined ? undefined : resolve(cwd, file);
  if (passwordFile !== undefined) await passwordIn(passwordFile);
  return {
    ...(bundle !== undefined && isOverTls(found.address) && { skep_ca_bundle: resolve(cwd, bundle) }),
    scaling_config: {
      session_redis: {
        address: found.address,
        ...(found.database !== undefined && { db: found.database }),
        ...(prefix !== undefined && { key_prefix: prefix }),
        ...(passwordFile !== undefined && { password_file: passwordFile }),
      },
    },
  };
}

function notShared(transport: string): SkepError {
  return new SkepError('usage/conflict', {
    message: `--session-redis is for servers of streamable HTTP, and this one speaks ${transport}`,
    hint: 'leave it out: such a server keeps one replica of its proxy',
  });
}
