import { hasCode } from '@skep/core/errors/skep-error.ts';
import { exactly } from '@skep/core/settings/shape.ts';
import type { ToolSettings } from '@skep/proxy/steps/tool-view.ts';
import { overridesShape, type ToolOverrides } from '../settings/tools.ts';
import { invalidFile, readConfigFile } from './read-config-file.ts';
import type { RunConfig } from './run-config.ts';

/** The members of a run configuration that say what clients see of the server's tools. */
export type ToolConfig = {
  readonly [Key in 'tools_filter' | 'tools_override' | 'tools_override_path']?: RunConfig[Key] | undefined;
};

const fileShape = exactly({ toolsOverride: overridesShape });
const HINT = 'write {"toolsOverride": {"<name>": {"name": "<other name>", "description": "<text>"}}}';

/**
 * The file of `--tools-override` (docs/behaviour/proxy.md#tools). Fails with `config/invalid` naming the member that is
 * wrong, and with `file/*`.
 */
export async function readOverrides(path: string): Promise<ToolOverrides> {
  const file = { path, what: 'tools override', hint: HINT };
  const { toolsOverride } = await readConfigFile(file, fileShape);
  if (Object.keys(toolsOverride).length === 0) throw invalidFile(file, '"toolsOverride" is empty');
  return toolsOverride;
}

/** What clients see of the tools; undefined where they see all as they are. */
export function toolsOf({
  tools_filter: filter,
  tools_override: overrides,
}: ToolConfig): ToolSettings | undefined {
  const hasFilter = filter !== undefined && filter.length > 0;
  const hasOverrides = overrides !== undefined && Object.keys(overrides).length > 0;
  if (!hasFilter && !hasOverrides) return undefined;
  return { ...(hasFilter && { filter }), ...(hasOverrides && { overrides }) };
}

/** As `toolsOf`, with the overrides that the file has now, where it is still there. Fails as `readOverrides`. */
export async function currentTools(config: ToolConfig): Promise<ToolSettings | undefined> {
  const { tools_override_path: path } = config;
  if (path === undefined) return toolsOf(config);
  try {
    return toolsOf({ ...config, tools_override: await readOverrides(path) });
  } catch (error) {
    if (hasCode(error, 'file/not-found')) return toolsOf(config);
    throw error;
  }
}
