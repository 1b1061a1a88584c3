import { SkepError } from '@skep/core/errors/skep-error.ts';
import { checkShape } from '../shape/check-shape.ts';
import type { SourceLimits } from '../config/config.ts';
import { kindShapes } from '../config/source-shape.ts';
import { durationOf } from '../shape/texts.ts';
import type { StoredSource, SyncStatus } from '../store/rows.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import { assertAllowed } from './allowed-path.ts';
import { apiSource } from './api/api-source.ts';
import type { ConditionalSource } from './source.ts';
import { fileUrlSource } from './file/url-source.ts';
import { fileSource } from './file/path-source.ts';
import type { GitAuth } from './git/credentials.ts';
import { KEY_NEEDED, needsKey } from './git/ssh-key.ts';
import { gitSource } from './git/git-source.ts';
import { inlineSource } from './file/inline-source.ts';
import { clientOpener, type OpenClient } from './open-client.ts';
import type { Source } from './source.ts';

/** What sources need of the program and the machine. */
export interface SourceSurroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where temporary folders are made. */
  readonly tempDir: string;
  readonly clock: Clock;
  /** `skep-registry/<version>`. */
  readonly userAgent: string;
  readonly limits: SourceLimits;
  /** What the last synchronisation left in the store. */
  readonly before?: SyncStatus;
}

/**
 * Makes the reader of a source. What the configuration file names is the operator's choice; a source made through the API
 * is held to the limits: files in the allowed folders only, and no private addresses. Fails with the codes of the kinds,
 * and with `internal/bug` for kinds that are not read at all.
 */
export function openSource(source: StoredSource, surroundings: SourceSurroundings): Source {
  const { name, kind, config } = source;
  const settings: unknown = JSON.parse(config);
  if (kind === 'git') return openGit(source, blockOf('git', settings, name), surroundings);
  if (kind === 'api') return openApi(source, blockOf('api', settings, name), surroundings);
  if (kind === 'file') return openFile(source, blockOf('file', settings, name), surroundings);
  throw new SkepError('internal/bug', { message: `source "${name}" of kind "${kind}" is not read` });
}

type Block<Kind extends keyof typeof kindShapes> = ReturnType<(typeof kindShapes)[Kind]['parse']>;

function openGit(
  source: StoredSource,
  { auth: given, ...git }: Block<'git'>,
  surroundings: SourceSurroundings,
): Source {
  const { env, tempDir, clock, limits } = surroundings;
  const auth = gitAuth(given);
  // The keys of the account are the operator's, and may open what whoever names a source must not see.
  if (source.creationType === 'API' && needsKey(git.repository, auth)) {
    throw new SkepError('source/invalid-credentials', { message: `source "${source.name}": ${KEY_NEEDED}` });
  }
  const options = { name: source.name, ...defined(git), ...(auth === undefined ? {} : { auth }) };
  const allowPrivate = mayBePrivate(source, surroundings);
  const opened = gitSource(options, {
    env,
    tempDir,
    clock,
    allowPrivate,
    maxBytes: limits.maxCatalogueBytes,
  });
  if (auth === undefined) return opened;
  const file = 'sshKeyFile' in auth ? auth.sshKeyFile : auth.passwordFile;
  return guarded(opened, file, foldersFor(source, surroundings));
}

function gitAuth(given: Block<'git'>['auth']): GitAuth | undefined {
  const { username, passwordFile, sshKeyFile } = given ?? {};
  if (sshKeyFile !== undefined) return { sshKeyFile };
  return username === undefined || passwordFile === undefined ? undefined : { username, passwordFile };
}

function openApi(
  source: StoredSource,
  { endpoint, timeout }: Block<'api'>,
  surroundings: SourceSurroundings,
): Source {
  const { clock, limits, before } = surroundings;
  const holdsBundles = before !== undefined && before.counts.skill + before.counts.plugin > 0;
  const list = {
    pages: limits.maxListPages,
    servers: limits.maxListServers,
    bytes: limits.maxCatalogueBytes,
  };
  const options = { name: source.name, endpoint, limits: list, holdsBundles, ...timeoutOf(timeout) };
  return apiSource(options, { open: client(source, surroundings), now: () => clock.now() });
}

function openFile(source: StoredSource, block: Block<'file'>, surroundings: SourceSurroundings): Source {
  const { name } = source;
  const { path, url, data, timeout } = block;
  const maxBytes = surroundings.limits.maxCatalogueBytes;
  if (url !== undefined) {
    return fileUrlSource({ name, url, maxBytes, ...timeoutOf(timeout) }, client(source, surroundings));
  }
  if (data !== undefined) return inlineSource({ name, data });
  if (path === undefined) throw new SkepError('config/invalid', { message: `source "${name}" has no place` });
  const within = foldersFor(source, surroundings);
  return fileSource({ name, path, maxBytes, ...(within === undefined ? {} : { within }) });
}

/** A block as the store keeps it was checked before it was written; another program's hand is found out here. */
function blockOf<Kind extends keyof typeof kindShapes>(
  kind: Kind,
  settings: unknown,
  name: string,
): Block<Kind>;
function blockOf(kind: keyof typeof kindShapes, settings: unknown, name: string): unknown {
  const checked = checkShape(kindShapes[kind], settings);
  if ('data' in checked) return checked.data;
  const message = checked.problems.map((problem) => problem.message).join('; ');
  throw new SkepError('config/invalid', { message: `source "${name}": ${message}` });
}

function mayBePrivate({ creationType }: StoredSource, { limits }: SourceSurroundings): boolean {
  return creationType === 'CONFIG' || limits.allowPrivateIP;
}

function foldersFor(
  { creationType }: StoredSource,
  { limits }: SourceSurroundings,
): readonly string[] | undefined {
  return creationType === 'CONFIG' ? undefined : limits.allowedPaths;
}

function client(source: StoredSource, surroundings: SourceSurroundings): OpenClient {
  const { userAgent } = surroundings;
  return clientOpener({ userAgent, allowPrivate: mayBePrivate(source, surroundings) });
}

/** The source, with a look at where its password or key lies before every fetch. */
function guarded(
  source: ConditionalSource,
  file: string,
  folders: readonly string[] | undefined,
): ConditionalSource {
  if (folders === undefined) return source;
  return {
    name: source.name,
    label: source.label,
    fetch: async (signal) => {
      await assertAllowed(file, folders);
      return source.fetch(signal);
    },
    fetchIfChanged: async (known, signal) => {
      await assertAllowed(file, folders);
      return source.fetchIfChanged(known, signal);
    },
  };
}

function timeoutOf(text: string | undefined): { readonly timeoutMs?: number } {
  const timeoutMs = durationOf(text ?? '');
  return timeoutMs === undefined ? {} : { timeoutMs };
}

/** Without members that are undefined. */
function defined<T extends object>(value: T): { [Key in keyof T]: Exclude<T[Key], undefined> };
function defined(value: object): object {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined));
}
