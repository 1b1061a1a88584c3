import { createHash } from 'node:crypto';
import { access } from 'node:fs/promises';
import path from 'node:path';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { members, optional, readAs, text } from '@skep/core/settings/shape.ts';
import type { Finding, FindRuntime, Refusal, RuntimeEnvironment } from '../environment.ts';
import { userFile } from '../user-file.ts';
import { EngineClient } from './client.ts';
import { DockerRuntime } from './docker-runtime.ts';
import { endpointText, parseEndpoint, type Endpoint } from './endpoint.ts';
import { socketCandidates, SOCKET_OVERRIDES } from './engine-sockets.ts';

/** How long an engine may take to answer a ping, in milliseconds. */
const PING_MS = 5000;

/** A container engine of this user, or the one at the address that a saved workload names. */
export const findDocker: FindRuntime = async (given, saved) => {
  const environment = saved === undefined ? given : { ...given, env: pointedAt(given.env, saved) };
  const { env, home } = environment;
  /** Whoever answered has said already what it is. */
  let client: EngineClient | undefined;
  const engine = await findEngine({
    env,
    home,
    readText: userFile,
    exists: (file) =>
      access(file).then(
        () => true,
        () => false,
      ),
    async ping(endpoint) {
      client = new EngineClient(endpoint);
      await client.about(AbortSignal.timeout(PING_MS));
    },
  });
  if (!('found' in engine)) return engine;
  return { found: new DockerRuntime(client ?? new EngineClient(engine.found), environment) };
};

/** Without what would lead away from the engine a workload was made on. */
function pointedAt(env: RuntimeEnvironment['env'], endpoint: string): RuntimeEnvironment['env'] {
  const kept = Object.entries(env).filter(([name]) => !SOCKET_OVERRIDES.includes(name));
  return { ...Object.fromEntries(kept), DOCKER_HOST: endpoint };
}

export interface EngineSearch extends Pick<RuntimeEnvironment, 'env' | 'home'> {
  /** Text of a file, undefined when it does not exist. */
  readonly readText: (file: string) => Promise<string | undefined>;
  readonly exists: (path: string) => Promise<boolean>;
  /** Resolves when an engine answers there within its time, else rejects with a SkepError. */
  readonly ping: (endpoint: Endpoint) => Promise<void>;
}

/** An engine somebody named. */
interface Named {
  readonly strategy: string;
  readonly address: string;
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
    return { refusals: [{ strategy: 'docker context', why: error.message }] };
  }
  if (named) return tryNamed(search, named);
  const refusals: Refusal[] = [];
  for (const [owner, file] of socketCandidates(search)) {
    const found: Endpoint = { kind: 'unix', path: file };
    const why = (await search.exists(file)) ? await refusal(search, found) : 'does not exist';
    if (why === undefined) return { found };
    refusals.push({ strategy: `${owner} socket ${file}`, why });
  }
  return { refusals };
}

async function namedEngine(search: EngineSearch): Promise<Named | undefined> {
  const exclusive = 'start the engine that the variable names, or unset the variable';
  for (const strategy of [...SOCKET_OVERRIDES, 'DOCKER_HOST']) {
    const value = search.env[strategy];
    if (!value) continue;
    const isPath = strategy !== 'DOCKER_HOST' && !value.includes('://');
    return { strategy, address: isPath ? `unix://${value}` : value, exclusive };
  }
  // A context may point at a desktop engine that is simply not started; that rules nothing else out.
  return currentContext(search);
}

async function tryNamed(search: EngineSearch, { address, strategy, ...rest }: Named) {
  const refused = (why: string) => ({ refusals: [{ strategy, why }], ...rest });
  try {
    const found = parseEndpoint(address);
    const why = await refusal(search, found);
    return why === undefined ? { found } : refused(why);
  } catch (error) {
    if (!hasCode(error, 'runtime/unavailable')) throw error;
    return refused(error.message);
  }
}

async function refusal(search: EngineSearch, endpoint: Endpoint): Promise<string | undefined> {
  try {
    await search.ping(endpoint);
    return undefined;
  } catch (error) {
    if (!(error instanceof SkepError)) throw error;
    return error.code === 'runtime/aborted'
      ? `no answer in time from ${endpointText(endpoint)}`
      : error.message;
  }
}

const configShape = members({ currentContext: optional(text) });
const metaShape = members({ Endpoints: members({ docker: members({ Host: text }) }) });

/**
 * The engine of the current docker context: `DOCKER_CONTEXT`, else `currentContext` of the docker config (contexts lie
 * under the SHA-256 of their name). Undefined for no or the `default` context. Throws `runtime/unavailable` when the
 * context is named and cannot be read.
 */
async function currentContext({ env, home, readText }: EngineSearch): Promise<Named | undefined> {
  const directory = env['DOCKER_CONFIG'] || path.join(home, '.docker');
  const read = async (...file: string[]) => parsedJson((await readText(path.join(directory, ...file))) ?? '');
  const name = env['DOCKER_CONTEXT'] || readAs(configShape, await read('config.json'))?.currentContext;
  if (!name || name === 'default') return undefined;
  const id = createHash('sha256').update(name).digest('hex');
  const meta = readAs(metaShape, await read('contexts/meta', id, 'meta.json'));
  if (meta === undefined) {
    throw new SkepError('runtime/unavailable', {
      message: `docker context "${name}" has no readable engine address`,
    });
  }
  return { strategy: `docker context "${name}"`, address: meta.Endpoints.docker.Host };
}
