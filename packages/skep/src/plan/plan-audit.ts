import { access, constants, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import { readAudit, type AuditMembers } from '../run-config/audit.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { RunValues } from '../settings/run-settings.ts';

/**
 * What `--enable-audit` and `--audit-config` say, as it is saved; the file counts. Fails with `usage/invalid-value`,
 * `config/invalid`, `audit/unwritable` or `file/*` for what no proxy could be started with.
 */
export async function planAudit(
  { enableAudit, auditConfig: file }: RunValues,
  cwd: string,
): Promise<Pick<RunConfig, keyof AuditMembers>> {
  if (file === '')
    throw new SkepError('usage/invalid-value', {
      message: '--audit-config is empty',
      hint: 'give it a value, or leave it out: without its file nothing would be audited',
    });
  const path = file === undefined ? undefined : resolve(cwd, file);
  return checkedAudit({
    audit_config: enableAudit && path === undefined ? {} : undefined,
    audit_config_path: path,
  });
}

/**
 * With what the file says, where only its path is there, and an absolute path of the log, which can be opened. Fails as
 * `planAudit`.
 */
export async function checkedAudit(
  { audit_config: given, audit_config_path: path }: AuditMembers,
  cwd = '/',
): Promise<Pick<RunConfig, keyof AuditMembers>> {
  const config = given ?? (path ? await readAudit(resolve(cwd, path)) : undefined);
  const logFile = config?.logFile ? resolve(cwd, config.logFile) : undefined;
  if (logFile !== undefined) await checkWritable(logFile);
  return {
    ...(config && { audit_config: logFile === undefined ? config : { ...config, logFile } }),
    ...(path && { audit_config_path: resolve(cwd, path) }),
  };
}

/** A file that is there, or a directory for it; nothing is made yet. */
async function checkWritable(path: string): Promise<void> {
  try {
    const found = await stat(path).catch(() => undefined);
    if (found?.isDirectory()) throw new SkepError('file/not-a-file', { message: 'it is a directory' });
    await access(found ? path : dirname(path), constants.W_OK);
  } catch (cause) {
    const why = cause instanceof SkepError ? cause.message : (errnoOf(cause) ?? String(cause));
    throw new SkepError('audit/unwritable', {
      message: `cannot open the audit log "${path}": ${why}`,
      cause,
    });
  }
}
