import type { Places } from '@skep/core/files/places.ts';
import type { Log } from '@skep/core/log/log.ts';
import { loadRunConfig, saveRunConfig } from '../run-config/file.ts';
import { keepPort } from '../run-config/kept-ports.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import { writeFound } from './found-server.ts';
import type { Supervised } from './supervise.ts';

interface KeepDeps {
  readonly places: Places;
  readonly log: Log;
}

/**
 * Keeps what a start has shown, for later ones: what the server said of itself, how hard its container is held, and the
 * port. What cannot be kept is logged, and costs a later start a question, a try or its address; this one goes on.
 */
export async function keepWhatShowed(
  { name, hardening: before }: RunConfig,
  { found, hardening, endpoint }: Pick<Supervised, 'found' | 'hardening' | 'endpoint'>,
  { places, log }: KeepDeps,
): Promise<void> {
  const keep = async (what: string, write: () => Promise<unknown>): Promise<void> => {
    try {
      await write();
    } catch (error) {
      log.warn({ err: error, workload: name }, `${what} could not be kept`);
    }
  };
  if (found !== undefined)
    await keep('what the server said of itself', () => writeFound(places, name, found));
  if (hardening !== undefined && hardening !== before) {
    const heldSo = async () => saveRunConfig(places, { ...(await loadRunConfig(places, name)), hardening });
    await keep('how its container is held', heldSo);
  }
  await keep('its port', () => keepPort(places, name, endpoint.port));
}
