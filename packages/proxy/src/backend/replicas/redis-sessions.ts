import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Log } from '@skep/core/log/log.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import { MAX_VALUE_CHARACTERS, type Replacement, type SessionStore } from './session-store.ts';

export interface RedisSettings {
  /** `redis://` or `rediss://` (TLS), without a password. */
  readonly address: string;
  readonly database: number;
  /** What each key begins with. */
  readonly keyPrefix: string;
  readonly password?: string | undefined;
}

const CONNECT_WITHIN_MS = 3_000;
const ANSWER_WITHIN_MS = 2_000;
const PING_EVERY_MS = 10_000;
const LONGEST_PAUSE_MS = 2_000;
const MOST_WAITING = 4_096;

/** In Lua, which Redis runs as one step; nothing there is told as false. */
const REPLACE = `local found = redis.call('GET', KEYS[1]) or ''
if found ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1`;

interface Services {
  readonly clock: Pick<Clock, 'after'>;
  readonly log: Log;
}

/** Sessions in Redis. Begins to connect, waits for nobody, and goes on trying: who needs it meanwhile is told. */
export async function openRedisSessions(
  settings: RedisSettings,
  { clock, log }: Services,
): Promise<SessionStore> {
  const { createClient } = await import('@redis/client');
  let isAway = false;
  let isClosed = false;
  let isDialling = true;
  const client = createClient(optionsOf(settings, () => isClosed));
  const whenBack: (() => void)[] = [];
  client.on('reconnecting', () => (isDialling = true));
  client.on('connect', () => {
    isDialling = false;
    if (isClosed) end();
  });
  client.on('error', (error: Error) => {
    isDialling = false;
    if (isAway || isClosed) return;
    isAway = true;
    log.warn({ why: error.message }, 'Redis does not answer: only sessions that this proxy knows are served');
  });
  client.on('ready', () => {
    if (isAway) log.info({}, 'Redis answers again: sessions are shared');
    isAway = false;
    for (const tell of whenBack) tell();
  });
  // What is destroyed while it dials connects all the same, and stays (@redis/client 6.3.1).
  const end = (): void => {
    if (!isDialling && client.isOpen) client.destroy();
  };
  client.connect().catch(() => {});

  async function asked<T>(answer: () => Promise<T>): Promise<T> {
    const late = Promise.withResolvers<never>();
    const limit = clock.after(ANSWER_WITHIN_MS, () => late.reject(new Error('no answer in time')));
    try {
      return await Promise.race([answer(), late.promise]);
    } catch (cause) {
      throw new SkepError('proxy/session-store-away', { cause });
    } finally {
      limit.cancel();
    }
  }

  const keyOf = (key: string): string => `${settings.keyPrefix}session:${key}`;
  return {
    async get(key) {
      // GETRANGE, so that a value of any length costs no more than one that can be.
      const text = await asked(() => client.getRange(keyOf(key), 0, MAX_VALUE_CHARACTERS));
      return text || undefined;
    },
    async replace(key, { expected = '', value, ttlMs }: Replacement) {
      const args = { keys: [keyOf(key)], arguments: [expected, value, String(ttlMs)] };
      return (await asked(() => client.eval(REPLACE, args))) === 1;
    },
    extend: async (key, ttlMs) => (await asked(() => client.pExpire(keyOf(key), ttlMs))) === 1,
    onBack: (tell) => void whenBack.push(tell),
    close() {
      isClosed = true;
      end();
    },
  };
}

function optionsOf({ address, database, password }: RedisSettings, isClosed: () => boolean) {
  return {
    url: address,
    database,
    ...(password === undefined ? {} : { password }),
    disableOfflineQueue: true,
    disableClientInfo: true,
    commandsQueueMaxLength: MOST_WAITING,
    pingInterval: PING_EVERY_MS,
    maintNotifications: 'disabled',
    RESP: 2,
    socket: {
      connectTimeout: CONNECT_WITHIN_MS,
      reconnectStrategy: (tries: number) =>
        !isClosed() && Math.min(100 * 2 ** Math.min(tries, 10), LONGEST_PAUSE_MS),
    },
  } as const;
}
