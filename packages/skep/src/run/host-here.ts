import { once } from 'node:events';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { openLog } from '@skep/core/log/pino-log.ts';
import type { Context } from '../cli/context.ts';
import { openHost } from '../cli/open-host.ts';
import { connectRuntime } from '../cli/open-runtime.ts';
import type { Learning } from '../plan/plan.ts';
import { openProgress } from '../print/progress.ts';
import { permissionCard } from '../permissions/card.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import { workloadUrl } from '../run-config/workload-url.ts';
import type { Host, StartRequest } from '../supervisor/host.ts';
import { GRACE_MS } from '../supervisor/launch.ts';
import { whileLearning } from '../supervisor/workload-spec.ts';
import { keepLogsSmall } from '../supervisor/log-keeper.ts';
import { refuseForeign } from '../supervisor/private-directory.ts';
import { tellLearned } from './learn.ts';
import { asStarted, cardText, startEvents, tellStays, whenReady } from './tell-start.ts';

interface HostedHere extends Pick<StartRequest, 'movable' | 'secrets'> {
  /** See `NewWorkload`. */
  readonly learning?: Learning;
}

/**
 * Hosts a saved workload in this process until it ends or the person presses Ctrl-C, then removes it completely
 * (docs/behaviour/run.md#foreground). What fails at the start is removed too. `movable` and `secrets` as in `StartRequest`.
 */
export async function hostHere(
  config: RunConfig,
  context: Context,
  { movable = false, secrets, learning }: HostedHere = {},
): Promise<void> {
  const { terminal, signal, places, uid } = context;
  refuseForeign(places, uid);
  const log = await openLog({ level: config.debug ? 'debug' : 'warn' });
  const host = openHost(context, log, { foreground: true });
  const progress = openProgress(terminal);
  const ending = new AbortController();
  // What it sees of a workload that learns, no other object knows.
  const watching = learning && { learning, runtime: await connectRuntime(context, config.runtime) };
  const learns = watching && { runtime: watching.runtime, learns: true };
  const logsKept = keepLogsSmall({ ...context, signal: ending.signal, log });
  try {
    const tell = startEvents(progress, terminal);
    const endpoint = await host.start(config.name, {
      how: 'start',
      tell,
      signal,
      movable,
      secrets,
      ...learns,
    });
    progress.end();
    terminal.out(`${workloadUrl({ ...config, port: endpoint.port })}\n`);
    const allowed = learning === undefined ? config : whileLearning(config);
    const card = cardText(permissionCard(asStarted(allowed, endpoint)), terminal);
    terminal.err(`${whenReady(config.name, endpoint)}\n${card}Press Ctrl-C to stop and remove it.\n`);
    if (!signal.aborted) await Promise.race([host.over(config.name), once(signal, 'abort')]);
    if (signal.aborted) return;
    throw new SkepError('run/ended', {
      message: `the server of "${config.name}" ended and could not be restarted`,
    });
  } finally {
    progress.end();
    ending.abort();
    await logsKept;
    if (watching) await tellEnded(config, watching, { host, context });
    tellStays(config.name, await host.remove(config.name), terminal);
  }
}

/** What cannot be told is no reason to leave the workload where it is. */
async function tellEnded(
  config: RunConfig,
  watching: Parameters<typeof tellLearned>[1],
  { host, context }: { readonly host: Host; readonly context: Context },
): Promise<void> {
  try {
    await host.stop(config.name, GRACE_MS);
    await tellLearned(config, watching, context);
  } catch (error) {
    const reason = error instanceof SkepError ? `${error.message}; ${error.hint}` : 'internal error';
    context.terminal.err(`Warning: what ${config.name} did is not kept: ${printable(reason)}\n`);
  }
}
