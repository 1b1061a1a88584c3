import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { SOCKET_OVERRIDES, socketCandidates, type UserPlaces } from './candidates.ts';
import { currentContext, type ContextQuestion } from './contexts.ts';
import { endpointText, parseEndpoint, type Endpoint } from './endpoint.ts';
import type { Refusal } from '../environment.ts';

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
