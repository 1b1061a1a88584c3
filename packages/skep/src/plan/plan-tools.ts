import { resolve } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readOverrides, toolsOf, type ToolConfig } from '../run-config/tools.ts';
import type { RunValues } from '../settings/run-settings.ts';

/**
 * What `--tools` and `--tools-override` say, as it is saved. Fails with `usage/invalid-value`, `config/invalid` or `file/*`
 * for what no proxy could be started with.
 */
export async function planTools(values: RunValues, cwd: string): Promise<ToolConfig> {
  const { tools: lists = [], toolsOverride: file } = values;
  const filter = lists.flatMap((list) => list.split(',')).map((name) => name.trim());
  if (filter.includes(''))
    throw empty('--tools names a tool without a name', 'an empty list would offer all tools');
  if (file === '') throw empty('--tools-override is empty', 'without its file nothing would be renamed');
  const path = file === undefined ? undefined : resolve(cwd, file);
  const config = {
    tools_filter: filter.length === 0 ? undefined : filter,
    tools_override: path === undefined ? undefined : await readOverrides(path),
    tools_override_path: path,
  };
  await checkTools(config);
  return config;
}

function empty(message: string, why: string): SkepError {
  return new SkepError('usage/invalid-value', { message, hint: `give it a value, or leave it out: ${why}` });
}

/** Fails with `usage/invalid-value` for names that no proxy could tell apart. */
export async function checkTools(config: ToolConfig): Promise<void> {
  const settings = toolsOf(config);
  if (settings !== undefined) (await import('@skep/proxy/steps/tool-view.ts')).toolView(settings);
}
