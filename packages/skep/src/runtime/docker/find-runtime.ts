import { access } from 'node:fs/promises';
import type { Finding, FindRuntime, RuntimeEnvironment } from '../environment.ts';
import { userFile } from '../user-file.ts';
import { EngineClient } from './client.ts';
import { dockerRuntime } from './docker-runtime.ts';
import type { Endpoint } from './endpoint.ts';
import { findEngine, SOCKET_OVERRIDES, type EngineSearch } from './find-engine.ts';

/** How long an engine may take to answer a ping, in milliseconds. */
const PING_MS = 5000;

/** A container engine of this user, or the one at the address that a saved workload names. */
export const findDocker: FindRuntime = (given, saved) => {
  const environment = saved === undefined ? given : { ...given, env: pointedAt(given.env, saved) };
  const { env, home } = environment;
  /** Whoever answered has said already what it is. */
  const asked = new Map<Endpoint, EngineClient>();
  const search: EngineSearch = {
    env,
    home,
    readText: userFile,
    exists: (path) =>
      access(path).then(
        () => true,
        () => false,
      ),
    async ping(endpoint) {
      const client = new EngineClient(endpoint);
      await client.about(AbortSignal.timeout(PING_MS));
      asked.set(endpoint, client);
    },
  };
  return searchEngine(
    search,
    (endpoint) => async () => dockerRuntime(endpoint, environment, asked.get(endpoint)),
  );
};

export async function searchEngine<Found>(
  search: EngineSearch,
  make: (endpoint: Endpoint) => Found,
): Promise<Finding<Found>> {
  const engine = await findEngine(search);
  if ('endpoint' in engine) return { found: make(engine.endpoint) };
  const { refusals, exclusive } = engine;
  const hint = 'start the engine that the variable names, or unset the variable';
  return { refusals, ...(exclusive ? { exclusive: hint } : {}) };
}

/** Without what would lead away from the engine a workload was made on. */
function pointedAt(env: RuntimeEnvironment['env'], endpoint: string): RuntimeEnvironment['env'] {
  const overrides: readonly string[] = SOCKET_OVERRIDES;
  const kept = Object.entries(env).filter(([name]) => !overrides.includes(name));
  return { ...Object.fromEntries(kept), DOCKER_HOST: endpoint };
}
