import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import {
  openRequester,
  type Requester,
  type Shown,
  type StreamedAnswer,
} from '@skep/core/fetch/requester.ts';
import { z } from 'zod';
import type { PackageSource } from '../../protocol/reference.ts';
import type { RuntimeEnvironment } from '../environment.ts';
import { askUpstream, isMissing, plainText } from '../gateway/ask-upstream.ts';
import { loginFor, readNetrc, type Logins } from '../gateway/netrc.ts';
import { personConnections } from '../person-connections.ts';
import { withoutLogin } from '../npm/registries.ts';
import { chooseGoVersion, retractions } from './choose-version.ts';
import { notFromProxy, packageMissing } from './failure.ts';
import { escapedPath, isNamedBy, moduleCandidates } from './module-path.ts';
import type { GoSettings } from './toolchain.ts';

const MAX_TEXT_BYTES = 16 * 1024 * 1024;

interface Proxy {
  readonly url: URL;
  /** Any failure of it leads to the next one, and not only that it does not have something (`|` in GOPROXY). */
  readonly yields: boolean;
}

/**
 * The module proxies and the checksum database of the person, as Go would reach them: their addresses and logins stay in
 * this process. Repositories (`direct`) are not asked: only a proxy's answers can be bounded.
 */
export class GoProxies {
  readonly #settings: GoSettings;
  readonly #proxies: readonly Proxy[];
  readonly #logins: Logins;
  readonly #requester: Requester;
  #database: Promise<URL> | undefined;

  private constructor(settings: GoSettings, logins: Logins, requester: Requester) {
    this.#settings = settings;
    this.#proxies = proxiesOf(settings.GOPROXY);
    this.#logins = logins;
    this.#requester = requester;
  }

  /** Reads the settings; asks nobody. Throws `config/*`, `fetch/ca-bundle` or `file/*`. */
  static async open(
    environment: RuntimeEnvironment,
    settings: GoSettings,
    caCert: string | undefined,
  ): Promise<GoProxies> {
    const ca = caCert === undefined ? [] : [caCert];
    const requester = openRequester(await personConnections(environment.env, ca));
    return new GoProxies(settings, await readNetrc(environment), requester);
  }

  /**
   * One file of a module, by its path below the module's (`@v/v1.0.0.zip`); undefined where no proxy has it. Throws
   * `runtime/prefetch-failed`, which says which proxy answered how, or names a module that is private.
   */
  async file(modulePath: string, below: string, signal: AbortSignal): Promise<StreamedAnswer | undefined> {
    if (isNamedBy(this.#settings.GONOPROXY, modulePath)) throw notFromProxy(modulePath);
    for (const [at, { url: proxy, yields }] of this.#proxies.entries()) {
      const url = new URL(`${escapedPath(modulePath)}/${below}`, proxy);
      try {
        const answer = await this.#get(url, proxy, signal);
        if (!isMissing(answer)) return answer;
        answer.drop();
      } catch (error) {
        if (!yields || at === this.#proxies.length - 1 || signal.aborted) throw error;
      }
    }
    return undefined;
  }

  /** Something of the checksum database of that name; undefined where it is not the person's. */
  async checksums(name: string, below: string, signal: AbortSignal): Promise<StreamedAnswer | undefined> {
    const own = databaseOf(this.#settings.GOSUMDB);
    if (own === undefined || own.name !== name) return undefined;
    this.#database ??= this.#findDatabase(own, signal);
    const base = await this.#database;
    return this.#get(new URL(below, base), base, signal);
  }

  /**
   * Which module and version a reference means today. Throws as `file`, and `runtime/package-not-found` when no proxy has
   * a module of that path or of one above it.
   */
  async resolve(source: PackageSource, signal: AbortSignal): Promise<string> {
    for (const candidate of moduleCandidates(source.name)) {
      const version = await this.#versionOf(candidate, source.version, signal);
      if (version !== undefined) return version;
    }
    const specifier = source.version === undefined ? source.name : `${source.name}@${source.version}`;
    throw packageMissing(specifier);
  }

  async #versionOf(
    modulePath: string,
    wanted: string | undefined,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const info = async (below: string): Promise<string | undefined> => {
      const text = await this.#text(modulePath, below, signal);
      const version = infoShape.safeParse(parsedJson(text ?? '')).data?.Version;
      return version;
    };
    if (wanted !== undefined) return info(`@v/${escapedPath(wanted)}.info`);
    const listed = (await this.#text(modulePath, '@v/list', signal))?.split(/\s+/) ?? [];
    const newest = chooseGoVersion(listed);
    if (newest === undefined) return info('@latest');
    const goMod = await this.#text(modulePath, `@v/${escapedPath(newest)}.mod`, signal);
    return chooseGoVersion(listed, retractions(goMod ?? '')) ?? info('@latest');
  }

  async #text(modulePath: string, below: string, signal: AbortSignal): Promise<string | undefined> {
    const answer = await this.file(modulePath, below, signal);
    return (
      answer && plainText(answer, `the answer of the module proxy about "${modulePath}"`, MAX_TEXT_BYTES)
    );
  }

  /** A proxy that passes the database on is asked before the database itself. */
  async #findDatabase({ name, url }: Database, signal: AbortSignal): Promise<URL> {
    const [first] = this.#proxies;
    if (first === undefined) return url;
    const passed = new URL(`sumdb/${name}/`, first.url);
    const answer = await this.#get(new URL('supported', passed), first.url, signal).catch(() => undefined);
    answer?.drop();
    return answer?.status === 200 ? passed : url;
  }

  #get(url: URL, registry: URL, signal: AbortSignal): Promise<StreamedAnswer> {
    const showTo = (at: URL): Shown => {
      const login = loginFor(at, registry, this.#logins);
      return { headers: { 'user-agent': 'skep', ...(login && { authorization: login }) } };
    };
    const where = withoutLogin(new URL('/', url));
    const refused = (status: number): string =>
      `the Go module proxy at ${where} answered with status ${status}`;
    return askUpstream(this.#requester, url, { showTo, refused, signal });
  }

  [Symbol.dispose](): void {
    this.#requester.close();
  }
}

/** A version can be no path and no flag. */
const infoShape = z.object({ Version: z.string().regex(/^v[0-9][A-Za-z0-9.+_-]*$/) });

interface Database {
  readonly name: string;
  readonly url: URL;
}

/** `name`, `name+hash+key` or either with an address behind ("Go modules reference", GOSUMDB). */
function databaseOf(setting: string): Database | undefined {
  const [key = '', address] = setting.trim().split(/\s+/);
  const name = key.split('+')[0] ?? '';
  if (name === '' || name === 'off') return undefined;
  const url = URL.parse(withSlash(address ?? `https://${name}`));
  return url === null ? undefined : { name, url };
}

const withSlash = (text: string): string => (text.endsWith('/') ? text : `${text}/`);

/** Throws `config/invalid` for what is neither an address of HTTP nor one of Go's words. */
function proxiesOf(setting: string): readonly Proxy[] {
  const proxies: Proxy[] = [];
  for (const [, text = '', separator] of setting.matchAll(/([^,|]+)([,|]?)/g)) {
    const entry = text.trim();
    // What comes after these is never asked.
    if (entry === 'direct' || entry === 'off') break;
    const url = URL.parse(withSlash(entry));
    if (url === null || !/^https?:$/.test(url.protocol)) {
      throw new SkepError('config/invalid', {
        message: 'GOPROXY holds something that is no http or https address',
        hint: 'see go env GOPROXY; the sandbox takes modules from proxies alone',
      });
    }
    proxies.push({ url, yields: separator === '|' });
  }
  return proxies;
}
