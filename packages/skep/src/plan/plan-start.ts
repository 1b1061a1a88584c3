import { mergeSettings } from '@skep/core/settings/merge.ts';
import { loadAppConfig } from '../config/app-config.ts';
import { loadRunConfig } from '../run-config/file.ts';
import { referencesOf } from '../run-config/header-forward.ts';
import { checkKeys } from '../run-config/import-toolhive.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import { runSettings } from '../settings/run-settings.ts';
import { hiddenOf, planHidden } from './plan-hidden.ts';
import { secretsFor } from './secrets-for.ts';
import type { SavedWorkload, Surroundings } from './plan.ts';
import { preparationOf, sourceOf } from './preparation.ts';
import { settingsOfMachine } from './settings-of-run.ts';

export interface StartRequest {
  readonly name: string;
  /** Nothing happens to a workload that runs. */
  readonly isRunning: boolean;
  readonly foreground: boolean;
  /** What was given, from now on. */
  readonly limits: Partial<RunConfig>;
}

/**
 * A start of a saved workload. Mounts that the ignore file speaks against by now are refused, and an image or package that
 * was pruned is to be prepared again.
 */
export async function planStart(
  { name, isRunning, foreground, limits }: StartRequest,
  around: Surroundings,
): Promise<SavedWorkload> {
  const { places } = around;
  const config = await loadRunConfig(places, name);
  const decided = { is: 'saved', name, foreground } as const;
  if (isRunning) return { ...decided, secrets: {}, changes: {} };
  const start = { ...decided, secrets: await secretsFor(referencesOf(config), around) };
  await planHidden(hiddenOf(config, '/'), around);
  // Saved by a release that did not look, or by a later one.
  checkKeys(config.rest, `the saved configuration of "${name}"`);
  const { runtime, info } = await around.connect(config.runtime);
  await info;
  if (await runtime.has(config.image)) return { ...start, changes: limits };
  const app = await loadAppConfig(places);
  const settings = mergeSettings(runSettings, settingsOfMachine(app, around));
  const build = config.runtime_config ?? {};
  const preparation = preparationOf(sourceOf(config), { build, settings, app }, around);
  return { ...start, changes: limits, missing: { runtime, preparation } };
}
