import { existsSync } from 'node:fs';
import os from 'node:os';
import { EngineClient } from '../../packages/skep/src/runtime/docker/client.ts';
import { endpointText } from '../../packages/skep/src/runtime/docker/endpoint.ts';
import { findEngine as searchEngine } from '../../packages/skep/src/runtime/docker/find-engine.ts';
import { userDirectory, userFile } from '../../packages/skep/src/runtime/user-file.ts';

export interface Engine {
  readonly client: EngineClient;
  readonly version: string;
  readonly endpoint: string;
}

/** The container engine that `skep run` would use here, or undefined when none answers. */
export async function findEngine(): Promise<Engine | undefined> {
  const engine = await searchEngine({
    env: process.env,
    home: os.homedir(),
    readText: userFile,
    exists: (file) => Promise.resolve(existsSync(file)),
    list: userDirectory,
    hasProgram: () => false,
    ping: async (endpoint) => void (await new EngineClient(endpoint).ping(AbortSignal.timeout(5000))),
  });
  if (!('found' in engine)) return undefined;
  const client = new EngineClient(engine.found);
  const { body } = await client.call({ path: '/version' });
  const { Version = 'unknown' } = body as { Version?: string };
  return { client, version: Version, endpoint: endpointText(engine.found) };
}
