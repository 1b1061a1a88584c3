import type { Context } from '../cli/context.ts';
import { permissionCard } from '../permissions/card.ts';
import { SupervisorClient } from '../supervisor/client.ts';
import type { Learning } from '../plan/plan.ts';
import { openProgress, type Progress } from '../print/progress.ts';
import { loadRunConfig } from '../run-config/file.ts';
import { SkepError, hasCode } from '@skep/core/errors/skep-error.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { isLoopback } from '@skep/core/fetch/loopback.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { workloadUrl } from '../run-config/workload-url.ts';
import type { SecretEnv } from '../secrets/workload-secrets.ts';
import type { ProcessIdentity } from '../supervisor/process-identity.ts';
import { hostOf, readStatus } from '../supervisor/state.ts';
import { beginAhead, leave } from './begin-ahead.ts';
import { asStarted, startEvents, tellReady } from './tell-start.ts';

export interface LaunchChoice {
  readonly foreground: boolean;
  /** See `StartRequest`. */
  readonly movable?: boolean;
  /** Its secret variables, as the command has looked them up. */
  readonly secrets?: SecretEnv;
  /** See `NewWorkload`. */
  readonly learning?: Learning;
  readonly progress: Progress;
  readonly context: Context;
  /** One that looks for the supervisor already. */
  readonly client?: SupervisorClient;
  /** What it runs on, where that is known. */
  readonly runtime?: Runtime;
}

/**
 * Starts a workload whose run config is saved, here or in the supervisor; prints the URL on stdout once the server can be used.
 * When it cannot, the workload is removed with everything made for it.
 */
export async function launchSaved(
  config: RunConfig,
  {
    foreground,
    movable = false,
    secrets,
    learning,
    progress,
    context,
    client = new SupervisorClient(context),
    runtime,
  }: LaunchChoice,
): Promise<void> {
  const { terminal, signal } = context;
  warnOpen(config.host, terminal);
  if (foreground) {
    progress.end();
    const { hostHere } = await import('./host-here.ts');
    return hostHere(config, context, { movable, secrets, ...(learning && { learning }) });
  }
  try {
    const tell = startEvents(progress, terminal);
    const begunBy = runtime && (await beginAhead(config, { runtime, secrets, context }));
    const endpoint = await client.start(config.name, { movable, secrets, begunBy, signal, tell });
    progress.end();
    const url = workloadUrl({ ...config, port: endpoint.port });
    tellReady(
      { name: config.name, url, endpoint, card: permissionCard(asStarted(config, endpoint)) },
      terminal,
    );
  } catch (error) {
    progress.end();
    // The person may have pressed Ctrl-C: cleaning up must not be cut short by the same signal.
    await undoStart(config.name, context, client);
    throw error;
  }
}

/** Warns of a proxy that other machines reach: web pages are kept out on every address; programs are not. */
export function warnOpen(host: string, terminal: Pick<Context['terminal'], 'err'>): void {
  if (isLoopback(host)) return;
  terminal.err(
    `Warning: listening on ${host}: whoever reaches this address from another machine can use the server without signing in\n`,
  );
}

/** Starts a saved workload once more, where the supervisor that had begun to start it has died. */
export async function launchAgain(name: string, context: Context): Promise<void> {
  const progress = openProgress(context.terminal);
  try {
    const config = await loadRunConfig(context.places, name);
    await launchSaved(config, { foreground: false, progress, context });
  } finally {
    progress.end();
  }
}

/** Removes what was begun; that it cannot be is told, but what the person must hear is why the start failed. */
export async function undoStart(
  name: string,
  context: Context,
  client = new SupervisorClient(context),
): Promise<void> {
  const { signal } = new AbortController();
  try {
    if (await isHostedBy(context.self, name, context)) await leave(name, context);
    await client.remove(name, { signal }).catch(async (error: unknown) => {
      // Without a supervisor nobody hosts it, and it can be removed from here.
      if (!hasCode(error, 'supervisor/unreachable') || (await isHostedBy(undefined, name, context)))
        throw error;
      const { openHost } = await import('../cli/open-host.ts');
      await openHost(context, silentLog).remove(name);
    });
  } catch (error) {
    const reason = error instanceof SkepError ? error.message : 'internal error';
    context.terminal.err(
      `Warning: ${name} is not removed yet (${printable(reason)}); do it with skep rm ${name}\n`,
    );
  }
}

/**
 * By this process, or by any. Who hosts a workload, most of all a supervisor that could not be reached, hosts others too,
 * and is not to be ended for it.
 */
async function isHostedBy(
  process: ProcessIdentity | undefined,
  name: string,
  { places, isAlive }: Context,
): Promise<boolean> {
  const status = await readStatus(places, name).catch(() => undefined);
  const host = status && hostOf(status, isAlive);
  return host !== undefined && (process === undefined || host.pid === process.pid);
}
