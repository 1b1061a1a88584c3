import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Log } from '@skep/core/log/log.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { Backend } from '../backend.ts';
import type { RedisSettings } from './redis-connection.ts';
import type { SessionStore } from './session-store.ts';

/** Where a store is, or one that is open; whoever gets it closes it. */
export type SessionStoreSettings = RedisSettings | SessionStore;

interface Services {
  readonly backend: Backend;
  readonly clock: Clock;
  readonly log: Log;
  /** See `ProxyOptions`. */
  readonly random?: () => number;
}

/**
 * Undefined where nothing is shared. Fails with `proxy/step-unbuildable` where a server has no session for each of its clients, which
 * another replica could go on with (decision 0445).
 */
export async function openSessionStore(
  given: SessionStoreSettings | undefined,
  { backend, ...services }: Services,
): Promise<SessionStore | undefined> {
  if (given === undefined) return undefined;
  if (backend.kind !== 'http')
    throw new SkepError('proxy/step-unbuildable', {
      message: `sessions in Redis are for servers of streamable HTTP, and this one speaks ${backend.kind}`,
      hint: 'leave out --session-redis ("session_redis" of a file): such a server keeps one replica of its proxy',
    });
  if ('get' in given) return given;
  return (await import('./redis-sessions.ts')).openRedisSessions(given, services);
}
