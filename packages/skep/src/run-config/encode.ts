import { toolhiveLabels } from './fact-labels.ts';
import type { RunConfig } from './run-config.ts';

/** The state file's text: 2-space JSON with a trailing newline, secrets included, so it is only ever written 0600. */
export function encodeRunConfig(config: RunConfig): string {
  const { runtime, mount_sources } = config;
  return toText({ ...members(config), mount_sources, runtime });
}

/**
 * What `export` writes: readable by ToolHive (spec run-workload §7.1), which looks for its own labels, without the values
 * of secret variables and without what belongs to this machine (the runtime, where mounts lead to).
 */
export function encodeExport(config: RunConfig): string {
  const env = Object.entries(config.env_vars).filter(([name]) => !config.secret_env.includes(name));
  const container_labels = { ...config.container_labels, ...toolhiveLabels(config) };
  return toText({ ...members(config), env_vars: Object.fromEntries(env), container_labels });
}

function members(config: RunConfig): Record<string, unknown> {
  const { rest, runtime: _runtime, mount_sources: _sources, name, schema_version, ...own } = config;
  return { schema_version, name, container_name: name, base_name: name, ...own, ...rest };
}

function toText(value: Record<string, unknown>): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
