import type { FindRuntime } from '../environment.ts';
import { DockerRuntime } from './docker-runtime.ts';
import { connectEngine } from './find-engine.ts';

/** Workloads as containers of the engine that is found. */
export const findDocker: FindRuntime = async (environment, saved) => {
  const engine = await connectEngine(environment, { saved });
  return 'found' in engine ? { found: new DockerRuntime(engine.found, environment) } : engine;
};
