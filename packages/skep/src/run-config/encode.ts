import type { RunConfig } from './run-config.ts';

/** The state file's text: 2-space JSON with a trailing newline, secrets included, so it is only ever written 0600. */
export function encodeRunConfig(config: RunConfig): string {
  return toText({ ...members(config), runtime: config.runtime });
}

/**
 * What `export` writes: readable by ToolHive (spec run-workload §7.1), without the values of secret variables and
 * without what belongs to this machine (the runtime, and the debug flag of this run).
 */
export function encodeExport(config: RunConfig): string {
  const env = Object.entries(config.env_vars).filter(([name]) => !config.secret_env.includes(name));
  return toText({ ...members(config), env_vars: Object.fromEntries(env) });
}

function members(config: RunConfig): Record<string, unknown> {
  const { rest, runtime: _runtime, name, schema_version, ...own } = config;
  return { schema_version, name, container_name: name, base_name: name, ...own, ...rest };
}

function toText(value: Record<string, unknown>): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
