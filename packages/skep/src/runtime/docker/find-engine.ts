import { createHash } from 'node:crypto';
import path from 'node:path';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { z } from 'zod';
import { endpointText, parseEndpoint, type Endpoint } from './endpoint.ts';
import type { Refusal } from '../environment.ts';

interface SocketCandidate {
  /** Product the path belongs to, for messages. */
  readonly owner: string;
  readonly path: string;
}

interface UserPlaces {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
}

/** Sockets to try, in order (docs/behaviour/run.md#finding-the-engine). */
function socketCandidates({ env, home }: UserPlaces): SocketCandidate[] {
  const runtimeDir = env['XDG_RUNTIME_DIR'];
  const inHome = (owner: string, rest: string) => ({ owner, path: path.join(home, rest) });
  return [
    { owner: 'Podman', path: '/var/run/podman/podman.sock' },
    ...(runtimeDir ? [{ owner: 'Podman', path: path.join(runtimeDir, 'podman/podman.sock') }] : []),
    inHome('Podman', '.local/share/containers/podman/machine/podman.sock'),
    { owner: 'Docker', path: '/var/run/docker.sock' },
    ...(runtimeDir ? [{ owner: 'Docker', path: path.join(runtimeDir, 'docker.sock') }] : []),
    inHome('Docker', '.docker/run/docker.sock'),
    inHome('Docker', '.docker/desktop/docker.sock'),
    inHome('Rancher Desktop', '.rd/docker.sock'),
    inHome('OrbStack', '.orbstack/run/docker.sock'),
    inHome('Colima', '.colima/default/docker.sock'),
  ];
}

/** Variables that name a socket; the first one set wins and nothing else is tried. */
export const SOCKET_OVERRIDES = ['SKEP_PODMAN_SOCKET', 'SKEP_DOCKER_SOCKET', 'SKEP_COLIMA_SOCKET'] as const;

export interface EngineSearch extends UserPlaces {
  readonly readText: ContextQuestion['readText'];
  readonly exists: (path: string) => Promise<boolean>;
  /** Resolves when an engine answers there within its time, else rejects with a SkepError. */
  readonly ping: (endpoint: Endpoint) => Promise<void>;
}

export type EngineFound =
  | { readonly endpoint: Endpoint }
  /** `exclusive`: the user named this engine in a variable, so nothing else may be used in its place. */
  | { readonly refusals: readonly Refusal[]; readonly exclusive: boolean };

/** An engine somebody named; no other engine is used in its place. */
interface Named {
  readonly strategy: string;
  readonly address: string;
  readonly exclusive: boolean;
}

/**
 * Finds the engine (docs/behaviour/run.md#finding-the-engine): socket overrides, `DOCKER_HOST`, the current docker
 * context, then the well-known sockets. Never throws for an engine that does not answer; the refusals say what was
 * tried.
 */
export async function findEngine(search: EngineSearch): Promise<EngineFound> {
  let named: Named | undefined;
  try {
    named = await namedEngine(search);
  } catch (error) {
    if (!hasCode(error, 'runtime/unavailable')) throw error;
    return { refusals: [{ strategy: 'docker context', why: error.message }], exclusive: false };
  }
  if (named) return tryNamed(search, named);
  const refusals: Refusal[] = [];
  for (const candidate of socketCandidates(search)) {
    const endpoint: Endpoint = { kind: 'unix', path: candidate.path };
    const strategy = `${candidate.owner} socket ${candidate.path}`;
    const why = (await search.exists(candidate.path)) ? await refusal(search, endpoint) : 'does not exist';
    if (why === undefined) return { endpoint };
    refusals.push({ strategy, why });
  }
  return { refusals, exclusive: false };
}

async function namedEngine(search: EngineSearch): Promise<Named | undefined> {
  for (const variable of SOCKET_OVERRIDES) {
    const value = search.env[variable];
    if (!value) continue;
    return {
      strategy: variable,
      address: value.includes('://') ? value : `unix://${value}`,
      exclusive: true,
    };
  }
  const host = search.env['DOCKER_HOST'];
  if (host) return { strategy: 'DOCKER_HOST', address: host, exclusive: true };
  const context = await currentContext(search);
  // A context may point at a desktop engine that is simply not started; that rules nothing else out.
  return context && { strategy: `docker context "${context.name}"`, address: context.host, exclusive: false };
}

async function tryNamed(search: EngineSearch, { strategy, address, exclusive }: Named): Promise<EngineFound> {
  try {
    const endpoint = parseEndpoint(address);
    const why = await refusal(search, endpoint);
    return why === undefined ? { endpoint } : { refusals: [{ strategy, why }], exclusive };
  } catch (error) {
    if (!hasCode(error, 'runtime/unavailable')) throw error;
    return { refusals: [{ strategy, why: error.message }], exclusive };
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

const configShape = z.object({ currentContext: z.string().optional() });
const metaShape = z.object({ Endpoints: z.object({ docker: z.object({ Host: z.string() }) }) });

interface ContextQuestion {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  /** Text of a file, undefined when it does not exist. */
  readonly readText: (file: string) => Promise<string | undefined>;
}

/**
 * The engine address of the current docker context: `DOCKER_CONTEXT`, else `currentContext` of the docker config
 * (contexts lie under the SHA-256 of their name). Undefined for no or the `default` context. Throws
 * `runtime/unavailable` when the context is named and cannot be read.
 */
async function currentContext(
  question: ContextQuestion,
): Promise<{ name: string; host: string } | undefined> {
  const directory = question.env['DOCKER_CONFIG'] ?? path.join(question.home, '.docker');
  const name =
    question.env['DOCKER_CONTEXT'] || (await configured(question, path.join(directory, 'config.json')));
  if (!name || name === 'default') return undefined;
  const id = createHash('sha256').update(name).digest('hex');
  const text = await question.readText(path.join(directory, 'contexts/meta', id, 'meta.json'));
  const meta = metaShape.safeParse(parsedJson(text ?? ''));
  if (!meta.success) {
    throw new SkepError('runtime/unavailable', {
      message: `docker context "${name}" has no readable engine address`,
    });
  }
  return { name, host: meta.data.Endpoints.docker.Host };
}

async function configured(question: ContextQuestion, file: string): Promise<string | undefined> {
  return configShape.safeParse(parsedJson((await question.readText(file)) ?? '')).data?.currentContext;
}
