import { createHash } from 'node:crypto';
import { access } from 'node:fs/promises';
import path from 'node:path';
import { CODES } from '@skep/core/errors/codes.ts';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { bool, members, optional, readAs, text } from '@skep/core/settings/shape.ts';
import type { Finding, Refusal, RuntimeEnvironment } from '../environment.ts';
import { findProgram } from '../find-program.ts';
import { userDirectory, userFile } from '../user-file.ts';
import { EngineClient } from './client.ts';
import { parseEndpoint, type Endpoint } from './endpoint.ts';
import { socketCandidates, SOCKET_OVERRIDES, type SocketPlaces } from './engine-sockets.ts';
import type { TlsFiles } from './engine-tls.ts';

/** How long an engine may take to answer a ping, in milliseconds. */
const PING_MS = 5000;

/**
 * A container engine of this user, or the one at the address that a saved workload names; it has answered. Nobody waits for
 * an answer once the signal aborts.
 */
export async function connectEngine(
  { env, home }: Pick<RuntimeEnvironment, 'env' | 'home'>,
  { saved, signal }: { readonly saved?: string | undefined; readonly signal?: AbortSignal | undefined } = {},
): Promise<Finding<EngineClient>> {
  /** Whoever answered has said already what it is. */
  let client: EngineClient | undefined;
  const engine = await findEngine({
    env,
    home,
    ...(saved === undefined ? {} : { saved }),
    readText: userFile,
    list: userDirectory,
    exists: (file) =>
      access(file).then(
        () => true,
        () => false,
      ),
    hasProgram: (name) => findProgram(name, env) !== undefined,
    async ping(endpoint) {
      client = new EngineClient(endpoint);
      const late = AbortSignal.timeout(PING_MS);
      await client.about(signal ? AbortSignal.any([signal, late]) : late);
    },
  });
  if (!('found' in engine)) return engine;
  return { found: client ?? new EngineClient(engine.found) };
}

export interface EngineSearch extends Pick<RuntimeEnvironment, 'env' | 'home'>, SocketPlaces {
  /** Where the engine of a saved workload was, as `endpointText` wrote it; no other is looked for. */
  readonly saved?: string;
  readonly readText: (file: string) => Promise<string | undefined>;
  readonly exists: (path: string) => Promise<boolean>;
  /** Names of what a directory holds; none where there is none. */
  readonly list: (directory: string) => Promise<readonly string[]>;
  /** A program of that name is installed. */
  readonly hasProgram: (name: string) => boolean;
  /** Resolves when an engine answers there within its time, else rejects with a SkepError. */
  readonly ping: (endpoint: Endpoint) => Promise<void>;
}

/** An engine somebody named. */
interface Named {
  readonly strategy: string;
  readonly address: string;
  /** TLS is spoken there where the address says so, or this is `always`; its files lie in the directory. */
  readonly tls: { readonly directory: string; readonly always: boolean };
  /** See `Finding`. */
  readonly exclusive?: string;
}

/**
 * Finds the engine (docs/behaviour/run.md#finding-the-engine): socket overrides, `DOCKER_HOST`, the current docker
 * context, then the well-known sockets. Never throws for an engine that does not answer; the refusals say what was
 * tried.
 */
export async function findEngine(search: EngineSearch): Promise<Finding<Endpoint>> {
  let named: Named | undefined;
  try {
    named = await namedEngine(search);
  } catch (error) {
    if (!hasCode(error, 'runtime/unavailable')) throw error;
    return { refusals: [refusalOf('docker context', error)] };
  }
  if (named) return tryNamed(search, named);
  const refusals: Refusal[] = [];
  const looked = socketCandidates(search).map(
    async ([owner, file]) => [owner, file, await search.exists(file)] as const,
  );
  for (const one of looked) {
    const [owner, file, isThere] = await one;
    const found: Endpoint = { kind: 'unix', path: file };
    const strategy = `${owner} socket ${file}`;
    const refused = isThere ? await refusal(search, strategy, found) : { strategy, why: 'does not exist' };
    if (refused === undefined) return { found };
    refusals.push(refused);
  }
  return { refusals: [...refusals, ...(await sleepingPodman(search, refusals))] };
}

/** A Podman that is installed and only waits to be asked for: its sockets are not made by default. */
async function sleepingPodman(
  { env, hasProgram }: EngineSearch,
  refusals: readonly Refusal[],
): Promise<readonly Refusal[]> {
  const isThere = refusals.some((one) => one.strategy.startsWith('Podman') && one.why !== 'does not exist');
  if (isThere || !hasProgram('podman')) return [];
  const hint = hasProgram('systemctl')
    ? `systemctl ${env['XDG_RUNTIME_DIR'] === undefined ? '' : '--user '}enable --now podman.socket`
    : 'podman machine start';
  return [{ strategy: 'Podman', why: 'it is installed, and its socket is not enabled', hint }];
}

async function namedEngine(search: EngineSearch): Promise<Named | undefined> {
  const { env, home, saved } = search;
  const directory = env['DOCKER_CERT_PATH'] || configDirectory({ env, home });
  if (saved !== undefined) return savedEngine(search, saved, directory);
  const exclusive = 'start the engine that the variable names, or unset the variable';
  for (const strategy of [...SOCKET_OVERRIDES, 'DOCKER_HOST']) {
    const value = env[strategy];
    if (!value) continue;
    const isPath = strategy !== 'DOCKER_HOST' && !value.includes('://');
    // Either asks for TLS, and nothing for an engine that does not prove who it is.
    const tls = { directory, always: Boolean(env['DOCKER_TLS_VERIFY'] || env['DOCKER_TLS']) };
    return { strategy, address: isPath ? `unix://${value}` : value, tls, exclusive };
  }
  // A context may point at a desktop engine that is simply not started; that rules nothing else out.
  return currentContext(search);
}

/** Its TLS files are those of the docker context with its address, else those of the environment. */
async function savedEngine(search: EngineSearch, address: string, fallback: string): Promise<Named> {
  const exclusive = 'start the engine that the workload was made on';
  const named = { strategy: 'the engine of the workload', address, exclusive };
  const wanted = endpointOf(address);
  if (wanted?.isSecure !== true) return { ...named, tls: { directory: fallback, always: false } };
  for (const id of await search.list(contextFile(search, 'meta'))) {
    const meta = readAs(metaShape, await readJson(search, contextFile(search, 'meta', id, 'meta.json')));
    const there = endpointOf(meta?.Endpoints.docker.Host ?? '');
    if (there === undefined || !isSame(there.endpoint, wanted.endpoint)) continue;
    const directory = contextFile(search, 'tls', id, 'docker');
    if ((await search.list(directory)).length > 0) return { ...named, tls: { directory, always: true } };
  }
  return { ...named, tls: { directory: fallback, always: true } };
}

const isSame = (one: Endpoint, other: Endpoint): boolean =>
  one.kind === 'tcp' && other.kind === 'tcp' && one.host === other.host && one.port === other.port;

function endpointOf(address: string): ReturnType<typeof parseEndpoint> | undefined {
  try {
    return parseEndpoint(address);
  } catch (error) {
    if (hasCode(error, 'runtime/unavailable')) return undefined;
    throw error;
  }
}

async function tryNamed(search: EngineSearch, { address, strategy, tls, ...rest }: Named) {
  try {
    const { endpoint, isSecure } = parseEndpoint(address);
    const found =
      isSecure || tls.always ? await secured(endpoint, { ...tls, readText: search.readText }) : endpoint;
    const refused = await refusal(search, strategy, found);
    return refused === undefined ? { found } : { refusals: [refused], ...rest };
  } catch (error) {
    if (!(error instanceof SkepError)) throw error;
    return { refusals: [refusalOf(strategy, error)], ...rest };
  }
}

/** Sockets of this machine need none. */
async function secured(endpoint: Endpoint, files: TlsFiles): Promise<Endpoint> {
  if (endpoint.kind === 'unix') return endpoint;
  const { secureConnections } = await import('./engine-tls.ts');
  return { ...endpoint, secure: await secureConnections(endpoint, files) };
}

async function refusal(
  search: EngineSearch,
  strategy: string,
  endpoint: Endpoint,
): Promise<Refusal | undefined> {
  try {
    await search.ping(endpoint);
    return undefined;
  } catch (error) {
    if (!(error instanceof SkepError)) throw error;
    return refusalOf(strategy, error);
  }
}

/** What its code alone would say of the next step helps nobody here. */
const refusalOf = (strategy: string, { message: why, hint, code }: SkepError): Refusal => ({
  strategy,
  why,
  ...(hint === CODES[code].hint ? {} : { hint }),
});

const configShape = members({ currentContext: optional(text) });
const metaShape = members({
  Endpoints: members({ docker: members({ Host: text, SkipTLSVerify: optional(bool) }) }),
});

const configDirectory = ({ env, home }: Pick<EngineSearch, 'env' | 'home'>): string =>
  env['DOCKER_CONFIG'] || path.join(home, '.docker');
const contextFile = (search: EngineSearch, ...file: string[]): string =>
  path.join(configDirectory(search), 'contexts', ...file);

async function readJson({ readText }: EngineSearch, file: string): Promise<unknown> {
  return parsedJson((await readText(file)) ?? '');
}

/**
 * The engine of the current docker context: `DOCKER_CONTEXT`, else `currentContext` of the docker config (contexts lie
 * under the SHA-256 of their name, their TLS files beside). Undefined for no or the `default` context. Throws
 * `runtime/unavailable` when the context is named and cannot be read, or asks for an engine that proves nothing.
 */
async function currentContext(search: EngineSearch): Promise<Named | undefined> {
  const config = path.join(configDirectory(search), 'config.json');
  const name =
    search.env['DOCKER_CONTEXT'] || readAs(configShape, await readJson(search, config))?.currentContext;
  if (!name || name === 'default') return undefined;
  const id = createHash('sha256').update(name).digest('hex');
  const meta = readAs(metaShape, await readJson(search, contextFile(search, 'meta', id, 'meta.json')));
  if (meta === undefined) {
    throw new SkepError('runtime/unavailable', {
      message: `docker context "${name}" has no readable engine address`,
    });
  }
  const { Host: address, SkipTLSVerify } = meta.Endpoints.docker;
  if (SkipTLSVerify === true) {
    throw new SkepError('runtime/unavailable', {
      message: `docker context "${name}" does not verify its engine (skip-tls-verify), which Skep always does`,
      hint: `let docker context update ${name} give it ca, cert and key for ${address}`,
    });
  }
  const directory = contextFile(search, 'tls', id, 'docker');
  const always = (await search.list(directory)).length > 0;
  return { strategy: `docker context "${name}"`, address, tls: { directory, always } };
}
