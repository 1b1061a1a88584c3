import { dirname, resolve } from 'node:path';
import {
  auditSettings,
  auditShape,
  type AuditConfig,
  type AuditSettings,
} from '@skep/proxy/steps/audit/settings.ts';
import { readConfigFile } from './read-config-file.ts';
import type { RunConfig } from './run-config.ts';

/** The members of a run configuration that say what is written down of the calls of a workload. */
export type AuditMembers = {
  readonly [Key in 'audit_config' | 'audit_config_path']?: RunConfig[Key] | undefined;
};

/** The file of `--audit-config`; its log file begins at its folder. Fails as `readConfigFile`. */
export async function readAudit(path: string): Promise<AuditConfig> {
  const config = await readConfigFile({ path, what: 'audit configuration' }, auditShape);
  return config.logFile ? { ...config, logFile: resolve(dirname(path), config.logFile) } : config;
}

/**
 * What a workload's proxy writes down (docs/behaviour/proxy.md#audit-events); undefined where nobody asked for it. `logPath` is
 * the proxy's own log.
 */
export function auditOf({ audit_config: config }: AuditMembers, logPath: string): AuditSettings | undefined {
  return config && auditSettings(config, logPath);
}
