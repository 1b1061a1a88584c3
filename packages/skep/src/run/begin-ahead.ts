import type { Context } from '../cli/context.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { SecretEnv } from '../secrets/workload-secrets.ts';
import { noteData } from '../supervisor/kept-data.ts';
import { launchAhead } from '../supervisor/launch.ts';
import { overlaysOf } from '../supervisor/overlays.ts';
import type { ProcessIdentity } from '../supervisor/process-identity.ts';
import { openStatusRecord } from '../supervisor/state.ts';
import { ownerOf } from '../supervisor/owner.ts';

interface Beginning {
  readonly runtime: Runtime;
  /** Its secret variables; without them nothing is begun. */
  readonly secrets: SecretEnv | undefined;
  readonly context: Context;
}

/**
 * Starts a saved workload while the supervisor that this command has woken comes up, which then takes it over
 * (decision 0317). Answers with this process, which hosts it until then; undefined where nothing was begun. Never rejects:
 * what does not start here is started, or refused for a reason that is told, by the supervisor.
 */
export async function beginAhead(
  config: RunConfig,
  { runtime, secrets, context }: Beginning,
): Promise<ProcessIdentity | undefined> {
  const { places, policy, random, self, signal, woken } = context;
  if (woken === undefined || secrets === undefined || signal.aborted) return undefined;
  const owner = ownerOf(places.stateDir);
  const begun = new AbortController();
  try {
    const noted = openStatusRecord(config.name, context).set('starting');
    // Whoever makes anything waits for it.
    noted.catch(() => {});
    // A command may be ended before an engine has answered. What is left then, whoever comes next removes.
    const left = (): Promise<void> => noted.then(() => leave(config.name, context));
    signal.addEventListener('abort', () => void left().catch(() => {}), { signal: begun.signal });
    await noteData(config, runtime, { places, owner });
    await launchAhead(config, {
      runtime,
      owner,
      random,
      renew: true,
      ...(policy && { policy }),
      secrets: () => Promise.resolve(secrets),
      overlays: (moved) => overlaysOf(moved, places),
      noted,
    });
  } catch {
    // The supervisor meets the same, and tells it.
  } finally {
    begun.abort();
  }
  return self;
}

/** Hosts no longer what this process has begun, which is to be removed by whoever comes first. */
export function leave(name: string, context: Context): Promise<void> {
  return openStatusRecord(name, { ...context, self: { pid: 0, started: '' } }).set('removing');
}
