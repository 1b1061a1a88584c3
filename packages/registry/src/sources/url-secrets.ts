import { SkepError } from '@skep/core/errors/skep-error.ts';
import { redactUrl } from '@skep/core/log/redact.ts';
import type { DesiredState } from '../store/desired-state.ts';
import type { NamedSource, StoredSource } from '../store/rows.ts';

/**
 * The settings of a source (JSON text) as the store keeps them and the API shows them: http(s) addresses without the part
 * before `@` and without what their query says in secret. ssh addresses keep the user, which is no secret and part of the
 * address.
 */
export function withoutUrlSecrets(config: string): string {
  const value: unknown = JSON.parse(config);
  if (typeof value !== 'object' || value === null) return config;
  const members = Object.entries(value).map(([key, member]): [string, unknown] => [
    key,
    typeof member === 'string' && key !== 'data' ? withoutSecrets(member) : member,
  ]);
  const isSame = members.every(([key, member]) => member === Reflect.get(value, key));
  return isSame ? config : JSON.stringify(Object.fromEntries(members));
}

function withoutSecrets(text: string): string {
  const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null;
  if (url === null) return text;
  return redactUrl(takeUserInfo(url) === undefined ? text : url.href);
}

/** What the store gets to know: addresses without their secrets, which stay in the file. */
export function storable({ sources, registries }: DesiredState): DesiredState {
  return {
    sources: sources.map((source) => ({ ...source, config: withoutUrlSecrets(source.config) })),
    registries,
  };
}

/** A source with the address as the file has it, where that is what the store's row was made from. */
export function asGiven(stored: StoredSource, given: readonly NamedSource[]): StoredSource {
  const config = given.find(({ name }) => name === stored.name)?.config;
  const isSame = config !== undefined && withoutUrlSecrets(config) === stored.config;
  return stored.creationType === 'CONFIG' && isSame ? { ...stored, config } : stored;
}

/** The settings that hold secrets, as the file has them. */
export function secretsOf(sources: readonly NamedSource[]): readonly string[] {
  return sources.flatMap(({ config }) => (withoutUrlSecrets(config) === config ? [] : config));
}

/** Takes user name and password, percent-encoded, out of an address; undefined where it has neither. */
export function takeUserInfo(url: URL): { readonly username: string; readonly password: string } | undefined {
  const { username, password } = url;
  url.username = '';
  url.password = '';
  return username === '' && password === '' ? undefined : { username, password };
}

/** An http(s) address without its user information, and the header that carries it instead. */
export interface SplitUrl {
  readonly url: URL;
  /** `authorization` of RFC 7617, or nothing. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Takes user name and password out of an address, so that neither reaches a message. Fails with `fetch/invalid-url`. */
export function splitCredentials(address: string): SplitUrl {
  const url = URL.parse(address);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new SkepError('fetch/invalid-url', {
      message: `"${redactUrl(address)}" is not an http or https URL`,
    });
  }
  const user = takeUserInfo(url);
  if (user === undefined) return { url, headers: {} };
  const text = Buffer.from(`${decoded(user.username)}:${decoded(user.password)}`);
  return { url, headers: { authorization: `Basic ${text.toString('base64')}` } };
}

/** A `%` that begins no escape is taken as it is, as browsers do. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
