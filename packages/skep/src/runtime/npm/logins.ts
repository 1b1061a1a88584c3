import { readFile } from 'node:fs/promises';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { ClientIdentity } from '@skep/core/fetch/requester.ts';
import { npmSetting, type NpmConfig } from './npmrc.ts';

export interface Asked {
  readonly url: URL;
  /** The registry whose answer named the address, or that is asked itself. */
  readonly namedBy: URL;
  /** All registries of this person. */
  readonly registries: readonly URL[];
}

/**
 * The Authorization header for one address; undefined when there is none. A login belongs to the place that it is set for,
 * a host and a directory with everything below ("npmrc", auth related configuration); the nearest counts. A registry on
 * another host does not get it used for what it names: else one registry could fetch with the login for another, which
 * npm allows. Nor does it travel unprotected because the answer of a protected registry says so. A login inside the
 * address counts too.
 */
export function authorization(config: NpmConfig, asked: Asked): string | undefined {
  const login = nearest(asked, (place) => loginAt(config, place));
  if (login !== undefined) return login;
  const { username, password } = asked.url;
  if (username === '') return undefined;
  return basic(decodeURIComponent(username), decodeURIComponent(password));
}

/** The certificate that one address is shown, by the same rules. Throws `config/unreadable`. */
export async function clientIdentity(config: NpmConfig, asked: Asked): Promise<ClientIdentity | undefined> {
  const files = nearest(asked, (place) => {
    const [cert, key] = ['certfile', 'keyfile'].map((name) => npmSetting(config, `${place}:${name}`));
    return cert === undefined || key === undefined ? undefined : { cert, key };
  });
  if (files === undefined) return undefined;
  const [cert, key] = await Promise.all([pem(files.cert), pem(files.key)]);
  return { cert, key };
}

/** What is set for the nearest place at or above an address, where this address may have it. */
function nearest<T>(
  { url, namedBy, registries }: Asked,
  setAt: (place: string) => T | undefined,
): T | undefined {
  const place = nearestPlace(url, setAt);
  if (place === undefined) return undefined;
  const inTheClear = url.protocol === 'http:' && namedBy.protocol === 'https:';
  const isForeign =
    url.host !== namedBy.host && registries.some((registry) => nearestPlace(registry, setAt) === place);
  return inTheClear || isForeign ? undefined : setAt(place);
}

function nearestPlace(url: URL, setAt: (place: string) => unknown): string | undefined {
  let place = `//${url.host}${url.pathname}`;
  while (place.length > 2 && setAt(place) === undefined) place = place.replace(/(?:[^/]+|\/)$/, '');
  return place.length > 2 ? place : undefined;
}

function loginAt(config: NpmConfig, place: string): string | undefined {
  const at = (name: string) => npmSetting(config, `${place}:${name}`);
  const [token, auth, username, password] = [at('_authToken'), at('_auth'), at('username'), at('_password')];
  if (token !== undefined) return `Bearer ${token}`;
  if (auth !== undefined) return `Basic ${auth}`;
  if (username === undefined || password === undefined) return undefined;
  return basic(username, Buffer.from(password, 'base64').toString('utf8'));
}

const basic = (user: string, password: string): string =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

async function pem(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    throw new SkepError('config/unreadable', {
      message: `cannot read "${file}", which the settings of npm name as a client certificate or its key`,
      cause,
    });
  }
}
