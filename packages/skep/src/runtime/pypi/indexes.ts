import {
  openRequester,
  type Requester,
  type Shown,
  type StreamedAnswer,
} from '@skep/core/fetch/requester.ts';
import { normalName } from '../../protocol/pypi-name.ts';
import type { PackageSource } from '../../protocol/reference.ts';
import type { RuntimeEnvironment } from '../environment.ts';
import { askUpstream, isMissing, notFetchedFrom, plainText } from '../gateway/ask-upstream.ts';
import { loginFor, type Logins } from '../gateway/netrc.ts';
import { withoutLogin } from '../npm/registries.ts';
import { needsPython, packageMissing } from './failure.ts';
import { readPythonSettings, type PythonSettings } from './pip-settings.ts';
import type { Python } from './python.ts';
import { readSimplePage, SIMPLE_FORMS, type IndexFile } from './simple-page.ts';
import { allows, compareVersions, isPreRelease } from './version.ts';

/** The largest known pages are a tenth of this. */
const MAX_PAGE_BYTES = 128 * 1024 * 1024;

/** What an index has of one project. */
export interface Project {
  /** As indexes compare it. */
  readonly name: string;
  readonly index: URL;
  readonly files: readonly IndexFile[];
}

/**
 * The package indexes of the person, as uv and pip would reach them: their addresses, logins, certificates and proxies
 * stay in this process, whatever asks for a package.
 */
export class PythonIndexes {
  readonly #indexes: readonly URL[];
  readonly #logins: Logins;
  readonly #requester: Requester;

  private constructor(settings: PythonSettings, python: Pick<Python, 'index'>) {
    const own = python.index.endsWith('/') ? python.index : `${python.index}/`;
    this.#indexes = [...settings.extra, settings.general ?? new URL(own)];
    this.#logins = settings.logins;
    this.#requester = openRequester(settings.connections);
  }

  /** Reads the settings; asks nobody. Throws `config/*`, `fetch/ca-bundle` or `file/*`. */
  static async open(
    environment: RuntimeEnvironment,
    python: Pick<Python, 'index'>,
    caCert: string | undefined,
  ): Promise<PythonIndexes> {
    return new PythonIndexes(await readPythonSettings(environment, caCert), python);
  }

  /**
   * A project, from the first index that has it. Throws `runtime/package-not-found`, or `runtime/prefetch-failed`, which
   * says which index answered how.
   */
  async project(asked: string, signal: AbortSignal): Promise<Project> {
    const name = normalName(asked);
    for (const index of this.#indexes) {
      const url = new URL(`${name}/`, index);
      const answer = await this.#get(url, index, { accept: SIMPLE_FORMS, 'accept-encoding': 'gzip' }, signal);
      if (isMissing(answer)) {
        answer.drop();
        continue;
      }
      const whose = `the answer of the package index about "${name}"`;
      const text = await plainText(answer, whose, MAX_PAGE_BYTES);
      const type = answer.headers['content-type'] ?? '';
      const files = readSimplePage(text, { type, base: answer.url, project: name });
      if (files !== undefined) return { name, index, files };
      throw notFetchedFrom(`${whose} is no list of files`);
    }
    throw packageMissing(asked);
  }

  /**
   * Which exact version a reference means today for this Python, and the project that says so: the newest release that
   * is not taken back. Throws as `project`, and `runtime/prefetch-failed` when all need another Python.
   */
  async resolve(
    { name, version }: PackageSource,
    python: Pick<Python, 'version'>,
    signal: AbortSignal,
  ): Promise<{ readonly version: string; readonly project: Project }> {
    const project = await this.project(name, signal);
    const specifier = version === undefined ? name : `${name}@${version}`;
    const wanted = project.files.filter((file) =>
      version === undefined ? file.yanked === undefined : compareVersions(file.version, version) === 0,
    );
    const [newest] = wanted.toSorted(byNewest);
    if (newest === undefined) throw packageMissing(specifier);
    const fits = ({ requiresPython }: IndexFile): boolean => allows(requiresPython ?? '', python.version);
    const [chosen] = wanted.filter(fits).toSorted(byNewest);
    if (chosen !== undefined) return { version: chosen.version, project };
    throw needsPython(specifier, newest.requiresPython ?? 'of another version', python.version);
  }

  /** A file that the page of a project names, or another beside it. */
  async file({ index }: Pick<Project, 'index'>, url: URL, signal: AbortSignal): Promise<StreamedAnswer> {
    return this.#get(url, index, {}, signal);
  }

  async #get(
    url: URL,
    index: URL,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<StreamedAnswer> {
    const showTo = (at: URL): Shown => {
      const login = loginFor(at, index, this.#logins);
      const shown = login === undefined ? headers : { ...headers, authorization: login };
      return { headers: { 'user-agent': 'skep', ...shown } };
    };
    const where = `the package index at ${withoutLogin(new URL('/', url))}`;
    const refused = (status: number): string =>
      status === 401 || status === 403
        ? `${where} refused (${status}); sign in with its address or in ~/.netrc`
        : `${where} answered with status ${status}`;
    return askUpstream(this.#requester, url, { showTo, refused, signal });
  }

  [Symbol.dispose](): void {
    this.#requester.close();
  }
}

/** Releases before what comes before a release. */
function byNewest(left: IndexFile, right: IndexFile): number {
  const early = Number(isPreRelease(left.version)) - Number(isPreRelease(right.version));
  return early === 0 ? compareVersions(right.version, left.version) : early;
}
