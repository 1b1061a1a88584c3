import { readFile } from 'node:fs/promises';
import { isAbsolute } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readCaBundle } from '@skep/core/fetch/ca-bundle.ts';
import type { StreamOptions } from '@skep/core/fetch/streams.ts';
import { npmSetting, type NpmConfig } from './npmrc.ts';

/**
 * The registry that a package comes from: the one of its scope, else the general one (npm "scope"). Undefined when
 * nothing is set, which means npm's own default. Throws `config/invalid` for an address that is none.
 */
export function registryFor(config: NpmConfig, packageName: string): URL | undefined {
  const scope = /^(@[^/]+)\//.exec(packageName)?.[1];
  const scoped = scope === undefined ? undefined : npmSetting(config, `${scope}:registry`);
  const text = scoped ?? npmSetting(config, 'registry');
  return text === undefined ? undefined : registryUrl(text);
}

/** An address of a registry as one that names can be appended to. Throws `config/invalid`. */
export function registryUrl(text: string): URL {
  const url = URL.parse(text.endsWith('/') ? text : `${text}/`);
  if (url !== null && (url.protocol === 'https:' || url.protocol === 'http:')) return url;
  throw new SkepError('config/invalid', {
    message: 'the registry in the settings of npm is no http or https address',
    hint: 'see npm config get registry',
  });
}

/** The address without what signs in to it: what may stand in a build recipe or a message. */
export function withoutLogin(url: URL): string {
  const plain = new URL(url);
  plain.username = '';
  plain.password = '';
  return plain.href;
}

/**
 * The Authorization header for one address, from the login that is set for it or for the nearest directory above it, as
 * npm does ("npmrc", auth related configuration); undefined when there is none. A login inside the address counts too.
 */
export function authorization(config: NpmConfig, url: URL): string | undefined {
  for (let key = `//${url.host}${url.pathname}`; key.length > 2; key = key.replace(/(?:[^/]+|\/)$/, '')) {
    const login = loginAt(config, key);
    if (login !== undefined) return login;
  }
  if (url.username === '') return undefined;
  return basic(decodeURIComponent(url.username), decodeURIComponent(url.password));
}

function loginAt(config: NpmConfig, key: string): string | undefined {
  const at = (name: string) => npmSetting(config, `${key}:${name}`);
  const [token, auth, username, password] = [at('_authToken'), at('_auth'), at('username'), at('_password')];
  if (token !== undefined) return `Bearer ${token}`;
  if (auth !== undefined) return `Basic ${auth}`;
  if (username === undefined || password === undefined) return undefined;
  return basic(username, Buffer.from(password, 'base64').toString('utf8'));
}

const basic = (user: string, password: string): string =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

/** Who signs certificates, which proxy is between, and who asks: as npm would connect to `registry`. */
export async function npmConnections(
  config: NpmConfig,
  env: Readonly<Record<string, string | undefined>>,
  { registry, caCert }: { readonly registry: URL; readonly caCert?: string | undefined },
): Promise<Omit<StreamOptions, 'userAgent'>> {
  const set = (key: string) => {
    const value = npmSetting(config, key);
    return value === 'null' ? undefined : value;
  };
  const variable = (name: string) => env[name.toLowerCase()] ?? env[name.toUpperCase()];
  const cafile = set('cafile');
  const httpsProxy = set('https-proxy') ?? set('proxy') ?? variable('https_proxy') ?? variable('http_proxy');
  const identity = await clientIdentity(config, registry);
  return {
    ca: [
      ...(caCert === undefined ? [] : [caCert]),
      ...(config.get('ca') ?? []).filter((one) => one !== 'null' && one !== '').map(withLineBreaks),
      ...(cafile !== undefined && isAbsolute(cafile) ? await readCaBundle(cafile) : []),
    ],
    verify: set('strict-ssl') !== 'false',
    ...(identity === undefined ? {} : { identity }),
    httpProxy: set('proxy') ?? variable('http_proxy') ?? '',
    httpsProxy: httpsProxy ?? '',
    noProxy: set('noproxy') ?? variable('no_proxy') ?? '',
  };
}

const withLineBreaks = (pem: string): string => pem.replaceAll(String.raw`\n`, '\n');

async function clientIdentity(config: NpmConfig, registry: URL): Promise<StreamOptions['identity']> {
  const at = (name: string) => npmSetting(config, `//${registry.host}${registry.pathname}:${name}`);
  const [certfile, keyfile] = [at('certfile'), at('keyfile')];
  if (certfile === undefined || keyfile === undefined) return undefined;
  const [cert, key] = await Promise.all([readFile(certfile, 'utf8'), readFile(keyfile, 'utf8')]);
  return { cert, key };
}
