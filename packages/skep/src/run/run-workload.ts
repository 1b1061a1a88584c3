import type { Context } from '../cli/context.ts';
import { openClient } from '../cli/open-client.ts';
import { connectRuntime, identify } from '../cli/open-runtime.ts';
import { openProgress, type Progress } from '../print/progress.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { Prepared } from '../runtime/runtime.ts';
import type { SupervisorClient } from '../supervisor/client.ts';
import { isImageUsed } from '../supervisor/remove-workload.ts';
import { buildRunConfig } from '../plan/build-config.ts';
import { claimName, promisedPorts } from './claim-name.ts';
import { planPort } from '../runtime/free-port.ts';
import { handingOver, handOverByCatalogue, handOverByIndex } from '../plan/hand-over.ts';
import { launchSaved } from './launch-saved.ts';
import { savePrepared } from './save-prepared.ts';
import { tellLimits } from './tell-limits.ts';
import { wantedPort } from '../plan/wanted-port.ts';
import { warnUnusedBuild } from './warn-unused-build.ts';
import { warnUnverified } from './warn-unverified.ts';
import { checkRun, planEnv, planRun, type PlannedRun, type RunRequest } from '../plan/plan-run.ts';

/**
 * `skep run SERVER`: plan, claim the name and port, ask what is missing, prepare, save, launch. Whatever fails, nothing
 * half-made is left (docs/behaviour/run.md#order-of-a-run).
 */
export async function runWorkload(request: RunRequest, context: Context): Promise<void> {
  const client = openClient(context);
  try {
    await runWith(client, request, context);
  } finally {
    client.close();
  }
}

async function runWith(client: SupervisorClient, request: RunRequest, context: Context): Promise<void> {
  const { inside } = context;
  const { foreground } = request.values;
  const checked = await checkRun(request, context);
  handOverByCatalogue(checked, context);
  const runtime = await (inside?.connectRuntime() ?? connectRuntime(context, undefined));
  // Only what is saved says which engine it was.
  const identified = identify(runtime, { signal: context.signal }).then(({ info }) => info);
  identified.catch(() => {});
  const planned = await planRun(checked, context, runtime);
  handOverByIndex(planned, context);
  // Nothing is wrong with it, and a supervisor takes its time to start.
  if (!foreground && !inside) client.wake(context.signal);
  const name = planned.inputs.name ?? planned.resolved.generatedName;
  const lock = await claimName(name, runtime, context);
  try {
    const choosePort = await planPort({
      host: planned.inputs.host,
      ...wantedPort(request.values, planned.resolved.plan),
      promised: () => promisedPorts(context),
      random: context.random,
    });
    const merged = await planEnv(planned, context);
    const progress = inside ? handingOver(inside) : openProgress(context.terminal);
    try {
      const prepared = await prepare(planned, context, progress);
      const discard = (): Promise<void> => discardUnused(prepared, planned, { name, context });
      const build = async (): Promise<RunConfig> =>
        buildRunConfig({ planned, name, port: await choosePort(), merged, prepared, info: await identified });
      const config = await orElse(build, discard);
      await savePrepared(config, runtime, context.places);
      // What is said stays, and the line of the progress does not.
      progress.end();
      await tellLimits(config, runtime, context);
      if (inside) await inside.launch(config, runtime);
      else await launchSaved(config, { foreground, progress, context, client });
    } finally {
      progress.end();
    }
  } finally {
    lock.release();
  }
}

function prepare(planned: PlannedRun, context: Context, report: Progress): Promise<Prepared> {
  const { request, inputs, resolved, runtime } = planned;
  const { runtimeImage, runtimeAddPackage } = request.values;
  const { source } = resolved;
  warnUnusedBuild({ values: request.values, source, runtimeKind: runtime.kind }, context.terminal);
  if (request.values.imageVerification === 'warn') warnUnverified(resolved.source, context.terminal);
  return runtime.prepare({
    source: resolved.source,
    ...(runtimeImage === undefined ? {} : { baseImage: runtimeImage }),
    addPackages: runtimeAddPackage ?? [],
    ...(inputs.caCert === undefined ? {} : { caCert: inputs.caCert }),
    report,
    signal: context.signal,
  });
}

interface Discarding {
  readonly name: string;
  readonly context: Context;
}

async function discardUnused(
  prepared: Prepared,
  planned: PlannedRun,
  { name, context }: Discarding,
): Promise<void> {
  if (!prepared.ours || (await isImageUsed(prepared.reference, name, context.places))) return;
  await planned.runtime.discard(prepared.reference);
}

/** The value, or the failure after the undoing. */
async function orElse<T>(make: () => Promise<T>, undo: () => Promise<void>): Promise<T> {
  try {
    return await make();
  } catch (error) {
    await undo();
    throw error;
  }
}
