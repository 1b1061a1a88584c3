import * as shape from '@skep/core/settings/shape.ts';

const MAX_DATABASE = 65_535;
const MAX_PREFIX = 128;
const HOST_AND_PORT = /^(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]+\]):\d{1,5}$/;

/** Where a Redis is, and which of its databases is meant; undefined for what is no such address, or holds a password. */
export function redisAddress(
  text: string,
): { readonly address: string; readonly database: number | undefined } | undefined {
  const url = URL.parse(HOST_AND_PORT.test(text) ? `redis://${text}` : text);
  if (url === null || !['redis:', 'rediss:'].includes(url.protocol) || url.hostname === '') return undefined;
  if (url.password !== '' || url.search !== '' || url.hash !== '') return undefined;
  const database = /^\/?(\d{0,5})$/.exec(url.pathname)?.[1];
  if (database === undefined || Number(database) > MAX_DATABASE) return undefined;
  url.pathname = '';
  return { address: url.href.replace(/\/$/u, ''), database: database === '' ? undefined : Number(database) };
}

/** True for an address as `redisAddress` gives it back. */
export function isOverTls(address: string): boolean {
  return address.startsWith('rediss:');
}

export const NO_REDIS_ADDRESS = 'is not redis://HOST:PORT/DB or rediss://HOST:PORT/DB without a password';

/** True for what keys can begin with. */
export function isKeyPrefix(text: string): boolean {
  return text.length <= MAX_PREFIX && /^[\x21-\x7e]*$/.test(text);
}

/** Other tools write an empty text for "not given". */
const given = (inner: shape.Shape<string>): shape.Shape<string | undefined> =>
  shape.optional((value, fail) => (value === '' ? undefined : inner(value, fail)) as string);

/** Where replicas of a proxy share sessions, as it is saved. */
export const sessionRedisShape = shape.exactly({
  address: shape.textThat((text) => redisAddress(text) !== undefined, NO_REDIS_ADDRESS),
  db: shape.nullish(shape.wholeNumber(0, MAX_DATABASE)),
  key_prefix: given(shape.textThat(isKeyPrefix, 'is not at most 128 visible characters')),
  password_file: given(shape.noNul),
});

export type StoredSessionRedis = shape.ShapeType<typeof sessionRedisShape>;
