import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Log } from '@skep/core/log/log.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { Backend } from '../backend.ts';
import type { RedisSettings } from './redis-sessions.ts';
import type { SessionStore } from './session-store.ts';

/** Where a store is, or one that is open; whoever gets it closes it. */
export type SessionStoreSettings = RedisSettings | SessionStore;

interface Services {
  readonly backend: Backend;
  /** Messages are read between client and server. */
  readonly reads: boolean;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Undefined where nothing is shared. Fails with `proxy/step-unbuildable` where sessions are of the proxy and not of the server
 * (decision 0425).
 */
export async function openSessionStore(
  given: SessionStoreSettings | undefined,
  { backend, reads, ...services }: Services,
): Promise<SessionStore | undefined> {
  if (given === undefined) return undefined;
  if (backend.kind !== 'http')
    throw new SkepError('proxy/step-unbuildable', {
      message: `sessions in Redis are for servers of streamable HTTP, and this one speaks ${backend.kind}`,
      hint: 'leave out --session-redis ("session_redis" of a file): such a server keeps one replica of its proxy',
    });
  if (reads)
    throw new SkepError('proxy/step-unbuildable', {
      message:
        'sessions in Redis are for messages that pass as they are, and a setting has this proxy read them',
      hint: 'leave out --session-redis ("session_redis" of a file), or policies, tool lists, webhooks and whatever else reads messages',
    });
  if ('get' in given) return given;
  return (await import('./redis-sessions.ts')).openRedisSessions(given, services);
}
