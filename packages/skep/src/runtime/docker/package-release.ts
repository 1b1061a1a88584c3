import { createHash } from 'node:crypto';
import { hasCode } from '@skep/core/errors/skep-error.ts';
import { packageReference, type PackageSource } from '../../protocol/reference.ts';
import type { RuntimeEnvironment } from '../environment.ts';
import { readNpmConfig } from '../npm/npmrc.ts';
import { registryFor, withoutLogin } from '../npm/registries.ts';
import { Upstream } from '../npm/upstream.ts';
import type { PrepareRequest } from '../runtime.ts';
import { pythonIndex } from './python-index.ts';

/** Which release of a package a build installs, and from where. */
export interface Release {
  /** Absent where the build itself finds out. */
  readonly version?: string;
  /** A digest of what the index has, which tells a new release where the build finds out which one fits. */
  readonly releases?: string;
  /** See `RecipeOptions.sources`. */
  readonly sources: Readonly<Record<string, string>>;
}

type Asked = Pick<PrepareRequest, 'caCert' | 'report' | 'signal'>;
type Find = (source: PackageSource, environment: RuntimeEnvironment, asked: Asked) => Promise<Release>;

const FINDERS: Readonly<Record<PackageSource['ecosystem'], Find>> = {
  npm: findNpmRelease,
  pypi: findPythonRelease,
  go: findGoRelease,
};

/**
 * What a package means today, by the person's own registries and logins. Where this machine lacks the package manager
 * that knows them, the build finds out, and the answer has neither `version` nor `releases`. Throws
 * `runtime/package-not-found`, `runtime/prefetch-failed` or `config/*`.
 */
export async function findRelease(
  source: PackageSource,
  environment: RuntimeEnvironment,
  asked: Asked,
): Promise<Release> {
  return FINDERS[source.ecosystem](source, environment, asked);
}

/** Of npm and Go: whether there is such a version, the build finds out, and an image that is there needs no answer. */
const EXACT = /^v?\d+\.\d+\.\d+(?:[-+][\w.+-]+)?$/;

async function findNpmRelease(
  source: PackageSource,
  environment: RuntimeEnvironment,
  asked: Asked,
): Promise<Release> {
  const config = await readNpmConfig(environment);
  const scope = /^@[^/]+(?=\/)/.exec(source.name)?.[0];
  const addresses = [
    ['registry', registryFor(config, '')] as const,
    ...(scope === undefined ? [] : [[`${scope}:registry`, registryFor(config, source.name)] as const]),
  ];
  const sources = Object.fromEntries(
    addresses.flatMap(([key, url]) => (url === undefined ? [] : [[key, withoutLogin(url)]])),
  );
  if (EXACT.test(source.version ?? '')) return release(source.version, sources);
  const version = await askManager(NPM, source, asked, async () => {
    using upstream = await Upstream.open(environment, await asked.caCert?.());
    return (await upstream.resolve(source, asked.signal)).version;
  });
  return release(version ?? source.version, sources);
}

async function findPythonRelease(
  source: PackageSource,
  environment: RuntimeEnvironment,
  asked: Asked,
): Promise<Release> {
  const index = pythonIndex(environment.env);
  const sources: Release['sources'] =
    index === undefined ? {} : { PIP_INDEX_URL: index, UV_DEFAULT_INDEX: index };
  if (source.version !== undefined) return release(source.version, sources);
  // Which version fits depends on the Python of the base image, which only the build has.
  const releases = await askManager(PYTHON, source, asked, async () => {
    const { findPython } = await import('../pypi/python.ts');
    const { PythonIndexes } = await import('../pypi/indexes.ts');
    const python = await findPython(environment);
    using indexes = await PythonIndexes.open(environment, python, await asked.caCert?.());
    const { files } = await indexes.project(source.name, asked.signal);
    const seen = files.map((file) => `${file.filename} ${file.yanked ?? ''}`).toSorted();
    return createHash('sha256').update(seen.join('\n')).digest('hex');
  });
  return { sources, ...(releases === undefined ? {} : { releases }) };
}

async function findGoRelease(
  source: PackageSource,
  environment: RuntimeEnvironment,
  asked: Asked,
): Promise<Release> {
  const { findGo } = await import('../go/toolchain.ts');
  const { GoProxies } = await import('../go/proxies.ts');
  const found = await askManager(GO, source, asked, async () => {
    const { settings } = await findGo(environment);
    if (source.directory !== undefined || EXACT.test(source.version ?? ''))
      return { settings, version: source.version };
    using proxies = await GoProxies.open(environment, settings, await asked.caCert?.());
    return { settings, version: await proxies.resolve(source, asked.signal) };
  });
  const { env } = environment;
  const { GOPROXY, GOSUMDB, GONOSUMDB } = found?.settings ?? env;
  const set = Object.entries({ GOPROXY: GOPROXY && withoutLogins(GOPROXY), GOSUMDB, GONOSUMDB });
  const sources = Object.fromEntries(set.filter((pair): pair is [string, string] => !!pair[1]));
  return release(found?.version ?? source.version, sources);
}

const release = (version: string | undefined, sources: Release['sources']): Release =>
  version === undefined ? { sources } : { version, sources };

/** Addresses of GOPROXY, between commas and bars. */
const withoutLogins = (setting: string): string =>
  setting.replaceAll(/[^,|]+/g, (entry) => {
    const url = URL.parse(entry.trim());
    return url === null ? entry.trim() : withoutLogin(url);
  });

interface Manager {
  readonly name: string;
  readonly missing: 'runtime/npm-missing' | 'runtime/python-missing' | 'runtime/go-missing';
}

const NPM: Manager = { name: 'npm', missing: 'runtime/npm-missing' };
const PYTHON: Manager = { name: 'Python', missing: 'runtime/python-missing' };
const GO: Manager = { name: 'Go', missing: 'runtime/go-missing' };

/** The answer of a package manager of this machine; undefined where there is none. */
async function askManager<T>(
  { name, missing }: Manager,
  source: PackageSource,
  { report }: Asked,
  ask: () => Promise<T>,
): Promise<T | undefined> {
  report.step(`Looking up ${packageReference(source)}`);
  try {
    return await ask();
  } catch (error) {
    if (!hasCode(error, missing)) throw error;
    report.detail(`${name} is not on this machine; the build looks the version up`);
    return undefined;
  }
}
