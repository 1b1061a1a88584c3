import {
  openRequester,
  type Requester,
  type Shown,
  type StreamedAnswer,
} from '@skep/core/fetch/requester.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import type { PackageSource } from '../../protocol/reference.ts';
import type { RuntimeEnvironment } from '../environment.ts';
import { askUpstream, isMissing, notFetchedFrom, plainText } from '../gateway/ask-upstream.ts';
import { defaultRegistry } from './program.ts';
import { npmSetting, readNpmConfig, type NpmConfig } from './npmrc.ts';
import { chooseVersion, decodePackument, type Packument } from './choose-version.ts';
import { npmSpecifier, packageMissing } from './failure.ts';
import { authorization, clientIdentity } from './logins.ts';
import { npmConnections, registriesSet, registryFor, registryUrl, withoutLogin } from './registries.ts';

/** The largest known documents are a tenth of this. */
const MAX_PACKUMENT_BYTES = 128 * 1024 * 1024;
/** The short form of a document, which is all that an install needs (npm "abbreviated metadata"). */
export const SHORT = 'application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8';

const VERSION_CHOICE = ['before', 'min-release-age', 'legacy-peer-deps', 'strict-peer-deps', 'engine-strict'];

/**
 * The package registries of the person, as npm would reach them: their addresses, logins, certificates and proxies stay
 * in this process, whatever asks for a package.
 */
export class Upstream {
  readonly #config: NpmConfig;
  readonly #fallback: URL;
  readonly #registries: readonly URL[];
  readonly #requester: Requester;

  private constructor(config: NpmConfig, fallback: URL, requester: Requester) {
    this.#config = config;
    this.#fallback = fallback;
    this.#registries = [...registriesSet(config), fallback];
    this.#requester = requester;
  }

  /** Reads the settings; asks nobody. Throws `config/*`, `fetch/ca-bundle`, `file/*` or `runtime/npm-missing`. */
  static async open(environment: RuntimeEnvironment, caCert: string | undefined): Promise<Upstream> {
    const config = await readNpmConfig(environment);
    const fallback = registryFor(config, '') ?? registryUrl(await defaultRegistry(environment));
    const connections = await npmConnections(config, environment.env, caCert);
    return new Upstream(config, fallback, openRequester(connections));
  }

  /**
   * The document of a package. `accept` is the form that is wanted. Throws `runtime/package-not-found` or
   * `runtime/prefetch-failed`, which say which registry answered how.
   */
  async packument(name: string, accept: string, signal: AbortSignal): Promise<Packument> {
    const registry = this.#registryOf(name);
    const url = new URL(name.replace('/', '%2f'), registry);
    const headers = { accept, 'accept-encoding': 'gzip' };
    const answer = await this.#get(url, { namedBy: registry, headers }, signal);
    if (isMissing(answer)) {
      answer.drop();
      throw packageMissing(name);
    }
    const whose = `the npm registry's answer about "${name}"`;
    const text = await plainText(answer, whose, MAX_PACKUMENT_BYTES);
    const packument = decodePackument(parsedJson(text));
    if (packument !== undefined) return packument;
    throw notFetchedFrom(`${whose} is no description of a package`);
  }

  /**
   * Which exact version a tag, range or bare name means today, and the document that says so. Throws as `packument`, and
   * `runtime/package-not-found` when it means none.
   */
  async resolve(
    source: PackageSource,
    signal: AbortSignal,
  ): Promise<{ readonly version: string; readonly packument: Packument }> {
    const packument = await this.packument(source.name, SHORT, signal);
    const version = chooseVersion(packument, source.version);
    if (version === undefined) throw packageMissing(npmSpecifier(source));
    return { version, packument };
  }

  /** What the document of a package names, from wherever that is. */
  async tarball(name: string, url: URL, signal: AbortSignal): Promise<StreamedAnswer> {
    return this.#get(url, { namedBy: this.#registryOf(name), headers: {} }, signal);
  }

  async #get(url: URL, { namedBy, headers }: Asking, signal: AbortSignal): Promise<StreamedAnswer> {
    const showTo = async (at: URL): Promise<Shown> => {
      const asked = { url: at, namedBy, registries: this.#registries };
      const login = authorization(this.#config, asked);
      const identity = await clientIdentity(this.#config, asked);
      const shown = login === undefined ? headers : { ...headers, authorization: login };
      return {
        headers: { 'user-agent': 'skep', ...shown },
        ...(identity === undefined ? {} : { identity }),
      };
    };
    const refused = (status: number): string => refusal(url, status);
    return askUpstream(this.#requester, url, { showTo, refused, signal });
  }

  /** What the person has set about which versions may be chosen; nothing else of theirs concerns an install. */
  get versionChoice(): Readonly<Record<string, string>> {
    const set = VERSION_CHOICE.flatMap((key) => {
      const value = npmSetting(this.#config, key);
      return value === undefined ? [] : [[key.replaceAll('-', '_'), value] as const];
    });
    return Object.fromEntries(set);
  }

  [Symbol.dispose](): void {
    this.#requester.close();
  }

  #registryOf(name: string): URL {
    return registryFor(this.#config, name) ?? this.#fallback;
  }
}

interface Asking {
  readonly namedBy: URL;
  readonly headers: Readonly<Record<string, string>>;
}

function refusal(url: URL, status: number): string {
  const where = `the npm registry at ${withoutLogin(new URL('/', url))}`;
  if (status === 401 || status === 403) return `${where} refused (${status}); sign in with npm login`;
  return `${where} answered with status ${status}`;
}
