import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { classOfAddress } from '@skep/core/fetch/address-class.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import type { Context } from '../cli/context.ts';
import { permissionCard, type CardRow } from '../permissions/card.ts';
import { denyHost, isolate, permitHost, type Changed } from '../permissions/change-hosts.ts';
import { denyPath, permitPath } from '../permissions/change-paths.ts';
import { findHidden } from '../permissions/hidden-paths.ts';
import { checkSources, mountSources } from '../permissions/mounts.ts';
import { profileMounts } from '../permissions/profile.ts';
import type { Right } from '../permissions/right.ts';
import { fitHardening } from '../plan/first-hardening.ts';
import { openProgress } from '../print/progress.ts';
import { cardFacts, toFacts } from '../print/table.ts';
import { loadRunConfig, saveRunConfig } from '../run-config/file.ts';
import { checkKeys } from '../run-config/import-toolhive.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import { readStatus, shouldRun } from '../supervisor/state.ts';
import { lockName } from '../workloads/name-lock.ts';
import { refuseForeground, swapConfig } from './swap-config.ts';

export interface RightsChange {
  readonly name: string;
  readonly how: 'permit' | 'deny';
  readonly rights: readonly Right[];
  /** Isolate it before anything else. */
  readonly isolated?: boolean;
  /** What runs is started again at once. */
  readonly restart: boolean;
}

/** Longer than a name that is there takes to resolve. */
const RESOLVE_MS = 2_000;
/** Longer than another command holds the name for a change like this. */
const LOCK_MS = 10_000;

/**
 * Changes what a workload may do, all of it or, where one of the rights cannot be changed, nothing; says what is different
 * now. One that runs is started again with it; where it does not start, it runs as before, and this fails with why.
 */
export async function changeRights(change: RightsChange, context: Context): Promise<void> {
  const { name, how, restart } = change;
  const { places, terminal } = context;
  using _lock = await lockName(name, { ...context, waitMs: LOCK_MS });
  const current = await loadRunConfig(places, name);
  checkKeys(current.rest, `the saved configuration of "${name}"`);
  await refuseForeground(name, context);
  const { config: changed, notes } = await changedConfig(current, change);
  if (isDeepStrictEqual(changed, current)) return tell(notes, context);
  const next = await withSources(changed, current, context);
  const status = await readStatus(places, name);
  const isRunning = status !== undefined && shouldRun(status.status);
  if (isRunning && restart) {
    const progress = openProgress(terminal);
    const failed = `${name} runs as before, because it did not start with what was ${how === 'permit' ? 'permitted' : 'left to it'}`;
    try {
      const stopped = `${name} stays stopped, with the rights it had`;
      await swapConfig(next, current, { name, context, progress, failed, stopped });
    } finally {
      progress.end();
    }
  } else await saveRunConfig(places, next);
  const card = changedRows(permissionCard(current), permissionCard(next));
  terminal.out(toFacts(cardFacts(card), terminal));
  const when = restart
    ? `${name} was started again`
    : `it counts when ${name} is started again: skep stop ${name} && skep start ${name}`;
  tell([...notes, isRunning ? when : `it counts when ${name} is started: skep start ${name}`], context);
}

async function changedConfig(
  current: RunConfig,
  { how, rights, isolated }: RightsChange,
): Promise<Changed<RunConfig>> {
  const first = isolated === true ? isolate(current) : { config: current, notes: [] };
  let { config } = first;
  const notes = [...first.notes];
  for (const right of rights) {
    const changed = how === 'permit' ? await permit(config, right) : deny(config, right);
    ({ config } = changed);
    notes.push(...changed.notes);
  }
  return { config, notes };
}

async function permit(config: RunConfig, right: Right): Promise<Changed<RunConfig>> {
  if (right.is === 'path') return permitPath(config, right);
  const leadsToPrivate = right.is === 'host' && (await isAtPrivateAddress(right.host));
  return permitHost(config, right, { leadsToPrivate });
}

function deny(config: RunConfig, right: Right): Changed<RunConfig> {
  return right.is === 'path' ? denyPath(config, right) : denyHost(config, right);
}

/** What this machine finds is what the gateway will find; what is not found is judged by its spelling. */
async function isAtPrivateAddress(host: string): Promise<boolean> {
  if (isIP(host) !== 0 || host.startsWith('.')) return false;
  const late = AbortSignal.timeout(RESOLVE_MS);
  const aborted = new Promise<readonly []>((resolve) => {
    late.addEventListener('abort', () => resolve([]), { once: true });
  });
  const found = await Promise.race([lookup(host, { all: true }).catch(() => []), aborted]);
  return found.some(({ address }) => classOfAddress(address) === 'private');
}

/** With where its new mounts lead to; each has to be there, and what of it is to stay hidden can be hidden. */
async function withSources(next: RunConfig, current: RunConfig, { places }: Context): Promise<RunConfig> {
  const had = new Set(profileMounts(current.permission_profile, '/').map(({ source }) => source));
  const added = profileMounts(next.permission_profile, '/').filter(({ source }) => !had.has(source));
  await checkSources(added);
  // What cannot be hidden is told here, and not by a start.
  const globally = next.ignore_config?.load_global ?? true;
  await findHidden({ file: places.ignoreFile, globally, mounts: added });
  const sources = { ...next.mount_sources, ...(await mountSources(added)) };
  return { ...next, ...(await fitHardening(next)), mount_sources: sources };
}

/** The rows that say something else now; one that is gone says nothing. */
function changedRows(before: readonly CardRow[], after: readonly CardRow[]): readonly CardRow[] {
  const old = new Map(before.map(({ key, text }) => [key, text]));
  return after.filter(({ key, text }) => old.get(key) !== text);
}

function tell(notes: readonly string[], { terminal }: Context): void {
  for (const note of notes) terminal.err(`${printable(note)}\n`);
}
