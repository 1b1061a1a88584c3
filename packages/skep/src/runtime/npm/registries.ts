import { isAbsolute } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readCaBundle } from '@skep/core/fetch/ca-bundle.ts';
import type { Connections } from '@skep/core/fetch/requester.ts';
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

/** Everything that is set as a registry. What is no address counts when it is asked for a package. */
export function registriesSet(config: NpmConfig): readonly URL[] {
  const keys = [...config.keys()].filter((key) => /^(?:@[^/]+:)?registry$/.test(key));
  return keys.flatMap((key) => URL.parse(withSlash(npmSetting(config, key) ?? '')) ?? []);
}

/** An address of a registry as one that names can be appended to. Throws `config/invalid`. */
export function registryUrl(text: string): URL {
  const url = URL.parse(withSlash(text));
  if (url !== null && (url.protocol === 'https:' || url.protocol === 'http:')) return url;
  throw new SkepError('config/invalid', {
    message: 'the registry in the settings of npm is no http or https address',
    hint: 'see npm config get registry',
  });
}

const withSlash = (text: string): string => (text.endsWith('/') ? text : `${text}/`);

/** The address without what signs in to it: what may stand in a build recipe or a message. */
export function withoutLogin(url: URL): string {
  const plain = new URL(url);
  plain.username = '';
  plain.password = '';
  return plain.href;
}

/** Who signs certificates and which proxy is between, as npm would connect. */
export async function npmConnections(
  config: NpmConfig,
  env: Readonly<Record<string, string | undefined>>,
  caCert: string | undefined,
): Promise<Connections> {
  const set = (key: string) => {
    const value = npmSetting(config, key);
    return value === 'null' ? undefined : value;
  };
  const variable = (name: string) => env[name.toLowerCase()] ?? env[name.toUpperCase()];
  const cafile = set('cafile');
  const httpsProxy = set('https-proxy') ?? set('proxy') ?? variable('https_proxy') ?? variable('http_proxy');
  return {
    allowPrivate: true,
    ca: [
      ...(caCert === undefined ? [] : [caCert]),
      ...(config.get('ca') ?? []).filter((one) => one !== 'null' && one !== '').map(withLineBreaks),
      ...(cafile !== undefined && isAbsolute(cafile) ? await readCaBundle(cafile) : []),
    ],
    verify: set('strict-ssl') !== 'false',
    httpProxy: set('proxy') ?? variable('http_proxy') ?? '',
    httpsProxy: httpsProxy ?? '',
    noProxy: set('noproxy') ?? variable('no_proxy') ?? '',
  };
}

const withLineBreaks = (pem: string): string => pem.replaceAll(String.raw`\n`, '\n');
