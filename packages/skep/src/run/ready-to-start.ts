import type { Context } from '../cli/context.ts';
import { openRuntime, type OpenedRuntime } from '../cli/open-runtime.ts';
import { checkNothingToHide } from '../permissions/ignore-file.ts';
import { profileMounts } from '../permissions/profile.ts';
import { loadRunConfig, saveRunConfig } from '../run-config/file.ts';
import { checkKeys } from '../run-config/import-toolhive.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { Report } from '../runtime/runtime.ts';
import { readStatus } from '../supervisor/state.ts';
import { holdPreparing } from '../workloads/name-lock.ts';
import { prepareSaved } from './prepare-saved.ts';

export interface Starting {
  readonly report: Report;
  /** What was given, from now on. */
  readonly limits: Partial<RunConfig>;
}

/**
 * What a start checks and repairs first, in the person's terminal: mounts that the ignore file speaks against by now are
 * refused, and an image or package that was pruned is prepared again; the saved configuration then says what it is
 * called now. Nothing happens to a workload that runs.
 */
export async function readyToStart(
  name: string,
  context: Context,
  { report, limits }: Starting,
): Promise<void> {
  const { places, signal } = context;
  const config = await loadRunConfig(places, name);
  if ((await readStatus(places, name))?.status === 'running') return;
  await checkNothingToHide({
    file: places.ignoreFile,
    globally: config.ignore_config?.load_global ?? true,
    mounts: profileMounts(config.permission_profile, '/'),
    override: 'remove the workload and run it with --ignore-globally=false',
  });
  // Saved by a release that did not look, or by a later one.
  checkKeys(config.rest, `the saved configuration of "${name}"`);
  if (Object.keys(limits).length > 0) await saveRunConfig(places, { ...config, ...limits });
  const opened = await openRuntime(context, { reference: config.runtime, signal });
  if (await opened.runtime.has(config.image)) return;
  const preparing = await holdPreparing(context);
  try {
    await prepareAgain(config, opened, { context, report });
  } finally {
    preparing.release();
  }
}

async function prepareAgain(
  config: RunConfig,
  opened: OpenedRuntime,
  { context, report }: { readonly context: Context; readonly report: Report },
): Promise<void> {
  const { places } = context;
  const { reference: image, ours } = await prepareSaved(config, { opened, context, report });
  if (image !== config.image && opened.info.kind === 'sandbox') {
    context.terminal.err(keptFiles(config.name));
  }
  // Read again: it may have been removed while this took its time.
  const saved = await loadRunConfig(places, config.name);
  await saveRunConfig(places, { ...saved, image, image_is_ours: ours });
}

/** Code and data cannot be told apart in what a server wrote beside its code, so the person decides. */
function keptFiles(name: string): string {
  return `Warning: ${name} has another version now, and still what the earlier one wrote for itself; to begin without that, remove it with skep rm ${name} and run it again\n`;
}
