import { openRedisConnection, type RedisServices, type RedisSettings } from './redis-connection.ts';
import { MAX_VALUE_CHARACTERS, type Replacement, type SessionStore } from './session-store.ts';

/** In Lua, which Redis runs as one step; nothing there is told as false. */
const REPLACE = `local found = redis.call('GET', KEYS[1]) or ''
if found ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1`;

/** Sessions in Redis. Begins to connect, waits for nobody, and goes on trying: who needs it meanwhile is told. */
export async function openRedisSessions(
  settings: RedisSettings,
  services: RedisServices,
): Promise<SessionStore> {
  const redis = await openRedisConnection(settings, services);
  const keyOf = (key: string): string => `${settings.keyPrefix}session:${key}`;
  return {
    async get(key) {
      // GETRANGE, so that a value of any length costs no more than one that can be.
      const text = await redis.asked((client) => client.getRange(keyOf(key), 0, MAX_VALUE_CHARACTERS));
      return text || undefined;
    },
    async replace(key, { expected = '', value, ttlMs }: Replacement) {
      const args = { keys: [keyOf(key)], arguments: [expected, value, String(ttlMs)] };
      return (await redis.asked((client) => client.eval(REPLACE, args))) === 1;
    },
    extend: async (key, ttlMs) => (await redis.asked((client) => client.pExpire(keyOf(key), ttlMs))) === 1,
    onBack: (tell) => redis.onBack(tell),
    close: () => redis.close(),
  };
}
