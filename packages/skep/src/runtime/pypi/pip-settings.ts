import path from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readCaBundle } from '@skep/core/fetch/ca-bundle.ts';
import type { Connections } from '@skep/core/fetch/requester.ts';
import type { RuntimeEnvironment } from '../environment.ts';
import { readNetrc, type Logins } from '../gateway/netrc.ts';
import { userFile } from '../user-file.ts';

type Reading = Pick<RuntimeEnvironment, 'env' | 'home' | 'loginFiles'>;
type Env = Reading['env'];

/** Where a person gets Python packages from. */
export interface PythonSettings {
  /** Indexes beside the general one; the first that has a project counts, as for uv. */
  readonly extra: readonly URL[];
  /** The general index; undefined where nothing is set, which means pip's own. */
  readonly general: URL | undefined;
  readonly connections: Connections;
  /** Logins by host (netrc). */
  readonly logins: Logins;
}

const GENERAL = ['UV_DEFAULT_INDEX', 'UV_INDEX_URL', 'PIP_INDEX_URL'] as const;
const EXTRA = ['UV_INDEX', 'UV_EXTRA_INDEX_URL', 'PIP_EXTRA_INDEX_URL'] as const;

/** True when a variable says where Python packages come from. */
export function namesPythonIndex(env: Env): boolean {
  return [...GENERAL, ...EXTRA].some((name) => !!env[name]);
}

/**
 * The settings of uv and pip that hold everywhere for this person: their variables, then pip's files ("uv environment
 * variables", "pip configuration"). Throws `config/unreadable`, `config/invalid` or `fetch/ca-bundle`.
 */
export async function readPythonSettings(
  reading: Reading,
  caCert: string | undefined,
): Promise<PythonSettings> {
  const { env } = reading;
  const files = await pipFiles(reading);
  const named = GENERAL.find((name) => !!env[name]);
  const general = named === undefined ? files.get('index-url') : env[named];
  const where = named ?? 'index-url in the settings of pip';
  const extra = [
    ...EXTRA.flatMap((name) => words(env[name]).map((text) => indexUrl(text, name, env))),
    ...words(files.get('extra-index-url')).map((text) => indexUrl(text, 'extra-index-url of pip', env)),
  ];
  return {
    extra,
    general: general ? indexUrl(general, where, env) : undefined,
    connections: await connectionsOf(env, files, caCert),
    logins: await readNetrc(reading),
  };
}

const words = (text = ''): string[] => text.split(/\s+/).filter((one) => one !== '');

/** uv lets an index have a name, `name=address`, by which variables sign in to it. */
function indexUrl(text: string, where: string, env: Env): URL {
  const [, name, address = ''] = /^(?:([\w.-]+)=)?(.*)$/s.exec(text.trim()) ?? [];
  const url = URL.parse(address.endsWith('/') ? address : `${address}/`);
  if (url === null || !/^https?:$/.test(url.protocol) || /[\r\n]/.test(text)) {
    throw new SkepError('config/invalid', {
      message: `${where} is no http or https address`,
      hint: `correct or unset ${where}`,
    });
  }
  const prefix = `UV_INDEX_${(name ?? '').toUpperCase().replaceAll(/[^A-Z0-9]/g, '_')}`;
  const user = name === undefined ? undefined : env[`${prefix}_USERNAME`];
  if (user !== undefined) {
    url.username = encodeURIComponent(user);
    url.password = encodeURIComponent(env[`${prefix}_PASSWORD`] ?? '');
  }
  return url;
}

/** The later of two files that set one thing counts. */
async function pipFiles({ env, home }: Reading): Promise<ReadonlyMap<string, string>> {
  const named = env['PIP_CONFIG_FILE'];
  const config = env['XDG_CONFIG_HOME'] ?? path.join(home, '.config');
  const files =
    named === '/dev/null'
      ? []
      : ['/etc/pip.conf', path.join(home, '.pip/pip.conf'), path.join(config, 'pip/pip.conf')];
  const all = [...files, ...(named === undefined ? [] : [named])];
  const texts = await Promise.all(all.map(userFile));
  return new Map(texts.flatMap((text) => [...parsePipConfig(text ?? '')]));
}

/** The ini dialect of pip's files: what stands in `[global]` and `[install]`, the latter counts. */
export function parsePipConfig(text: string): ReadonlyMap<string, string> {
  const found = { global: new Map<string, string>(), install: new Map<string, string>() };
  let section = '';
  let key = '';
  for (const line of text.split(/\r?\n/)) {
    if (line.trim() === '' || /^\s*[;#]/.test(line)) continue;
    const heading = /^\[(.*)\]/.exec(line)?.[1];
    const [, name, value = ''] = /^([\w-]+)\s*[=:](.*)$/.exec(line) ?? [];
    const values = section === 'global' || section === 'install' ? found[section] : undefined;
    if (heading !== undefined) section = heading;
    else if (/^\s/.test(line)) values?.set(key, `${values.get(key) ?? ''} ${line.trim()}`.trim());
    else if (name !== undefined) {
      key = name.toLowerCase().replaceAll('_', '-');
      values?.set(key, value.trim());
    }
  }
  return new Map([...found.global, ...found.install]);
}

async function connectionsOf(
  env: Env,
  files: ReadonlyMap<string, string>,
  caCert: string | undefined,
): Promise<Connections> {
  const variable = (name: string) => env[name.toLowerCase()] ?? env[name.toUpperCase()];
  const bundle = env['PIP_CERT'] ?? env['REQUESTS_CA_BUNDLE'] ?? env['SSL_CERT_FILE'] ?? files.get('cert');
  const proxy = env['PIP_PROXY'] ?? files.get('proxy');
  return {
    allowPrivate: true,
    ca: [
      ...(caCert === undefined ? [] : [caCert]),
      ...(bundle !== undefined && path.isAbsolute(bundle) ? await readCaBundle(bundle) : []),
    ],
    httpProxy: proxy ?? variable('http_proxy') ?? '',
    httpsProxy: proxy ?? variable('https_proxy') ?? '',
    noProxy: variable('no_proxy') ?? '',
  };
}
