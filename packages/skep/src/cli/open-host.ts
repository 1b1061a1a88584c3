import { createWriteStream } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { openLog } from '@skep/core/log/pino-log.ts';
import type { Log } from '@skep/core/log/log.ts';
import { startProxy, newBudgets } from '@skep/proxy/start.ts';
import { Host } from '../supervisor/host.ts';
import type { HostDeps, WorkloadLog } from '../supervisor/host-deps.ts';
import { workloadLogPath } from '../supervisor/remove-workload.ts';
import type { FrontDoor } from '../supervisor/front-state.ts';
import { addressFor, connectedClients } from '../supervisor/tell-clients.ts';
import { ownerOf } from '../supervisor/owner.ts';
import { referencesOf } from '../run-config/header-forward.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { Context } from './context.ts';
import { connectRuntime, openRuntime } from './open-runtime.ts';

/** What a host in this process is: the supervisor, which has the front door, or a command with `--foreground`. */
interface Hosting {
  readonly front?: () => Promise<FrontDoor>;
  readonly foreground?: boolean;
}

/** A host of workloads in this process. */
export function openHost(context: Context, log: Log, { front, foreground = false }: Hosting = {}): Host {
  const { places, program, clock, random, fetch, self, isAlive, end, osUser, home, spares, policy } = context;
  const budgets = newBudgets();
  return new Host({
    places,
    home,
    // Not under the context's signal: after Ctrl-C there is still something to stop and remove.
    openRuntime: (reference) => openRuntime(context, { reference }),
    connectRuntime: (reference) => connectRuntime(context, reference),
    ...secretsOfWorkloads(context, log),
    startProxy: (options) => startProxy({ ...options, budgets, ...(osUser === undefined ? {} : { osUser }) }),
    version: program.version,
    owner: ownerOf(places.stateDir),
    clock,
    random,
    fetch,
    self,
    foreground,
    isAlive,
    terminate: (pid) => end(pid, 'SIGTERM'),
    log,
    ...(policy && { policy }),
    ...(spares && { spares }),
    openWorkloadLog: (config) => openWorkloadLog(context, config),
    clients: connectedClients({
      ...context,
      addressOf: async (config) => addressFor(config, await front?.()),
      warn: (name, err, what) => warn(context, name, { err, what }),
    }),
  });
}

/** Into the log of a workload, whoever has it open. */
async function warn(
  context: Context,
  name: string,
  { err, what }: { readonly err: unknown; readonly what: string },
): Promise<void> {
  const file = await openWorkloadLog(context, { name, debug: false });
  file.log.warn({ err }, what);
  file.close();
}

/** Nothing of it is loaded for workloads without secrets. */
export function secretsOfWorkloads(
  context: Context,
  log: Log,
): Pick<HostDeps, 'secretsOf' | 'forgetSecrets' | 'signIns'> {
  return {
    async signIns() {
      return (await import('../secrets/sign-in-store.ts')).signInStore(context);
    },
    async secretsOf(config) {
      const references = referencesOf(config);
      if (references.length === 0) return {};
      const { resolveSecrets } = await import('../secrets/workload-secrets.ts');
      return resolveSecrets(references, context);
    },
    async forgetSecrets({ name, secrets = [], remote_url: elsewhere, skep_ca_bundle: caPath }) {
      if (elsewhere !== undefined) {
        const { dropSignIn } = await import('./sign-in-elsewhere.ts');
        await dropSignIn({ name, caPath }, context).catch((error: unknown) => {
          log.warn({ err: error, workload: name }, 'its sign-in could not be deleted');
        });
      }
      if (secrets.length === 0) return;
      const { forgetOwned } = await import('../secrets/workload-secrets.ts');
      // A keyring that is locked keeps no workload; skep secret list --system shows what is left.
      await forgetOwned(name, secrets, context).catch((error: unknown) => {
        log.warn({ err: error, workload: name }, 'its secrets could not be deleted');
      });
    },
  };
}

async function openWorkloadLog(
  context: Context,
  { name, debug }: Pick<RunConfig, 'name' | 'debug'>,
): Promise<WorkloadLog> {
  const path = workloadLogPath(context.places, name);
  await mkdir(dirname(path), { recursive: true, mode: 0o750 });
  const stream = createWriteStream(path, { flags: 'a', mode: 0o600 });
  // The flag of the run; a variable of the supervisor would be the same for all.
  const level = debug ? 'debug' : 'info';
  return { log: await openLog({ level, stream }), close: () => stream.end() };
}
