import { readdir, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { ifThere } from '@skep/core/files/errno.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import type { Context } from '../cli/context.ts';
import { knownNames, whileNothingIsMade } from '../workloads/name-lock.ts';

/** Of a workload, with what was before it was turned over. */
const LOG_FILE = /^(?<name>.+)\.log(?:\.1)?$/;

/** Removes log files of workloads that are no more, as a removal that was cut short leaves them, and names them. */
export async function pruneLogs(context: Context): Promise<void> {
  const { terminal } = context;
  const cleared = await whileNothingIsMade(context, () => removeOrphans(context));
  if (!cleared) terminal.err('Another command is starting a server: try again when it is done\n');
}

async function removeOrphans({ places, terminal }: Context): Promise<void> {
  const files = await ifThere(readdir(places.logsDir));
  if (files === undefined) return terminal.out('No logs directory found, nothing to prune\n');
  const logs = files.filter((file) => LOG_FILE.test(file));
  if (logs.length === 0) return terminal.out('No log files found\n');
  const used = new Set([basename(places.supervisorLog, '.log'), ...(await knownNames(places))]);
  const orphans = logs.filter((file) => !used.has(LOG_FILE.exec(file)?.groups?.['name'] ?? ''));
  if (orphans.length === 0) return terminal.out('No orphaned log files found to prune\n');
  for (const file of orphans.toSorted()) {
    const path = join(places.logsDir, file);
    await rm(path, { force: true });
    terminal.out(`Removed: ${printable(path)}\n`);
  }
}
