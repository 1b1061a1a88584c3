import { SkepError, hasCode } from '@skep/core/errors/skep-error.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { checkGroupExists } from '../settings/workload-name.ts';

/** Flags of commands that act on several workloads. */
export const selectionSettings = settingsOf({ group: 'Selection' }, [
  flag('bool', 'all', 'All servers', { short: 'a', default: false, excludes: ['group'] }),
  flag('string', 'group', 'All servers of a group', { short: 'g' }),
]);

export interface Selection {
  readonly names: readonly string[];
  readonly all: boolean;
  readonly group: string | undefined;
}

/** What the person selected, or `usage/*` when it is nothing or contradicts itself. */
export function checkSelection(
  names: readonly string[],
  { all, group }: Omit<Selection, 'names'>,
  command: string,
): Selection {
  if (names.length > 0 && (all || group !== undefined)) {
    throw new SkepError('usage/unexpected-argument', {
      message: `no arguments should be provided with ${all ? '--all' : '--group'}`,
      hint: `give names, or ${all ? '--all' : '--group'}, not both`,
    });
  }
  if (names.length === 0 && !all && group === undefined) {
    throw new SkepError('usage/missing-argument', {
      message: 'at least one workload name must be provided',
      hint: `see the names with skep list, or use skep ${command} --all`,
    });
  }
  checkGroupExists(group);
  return { names: [...new Set(names)], all, group };
}

/** Does the same to several workloads at once; afterwards fails with the first failure, naming how many there were. */
export async function eachOf(
  names: readonly string[],
  action: (name: string) => Promise<void>,
): Promise<void> {
  const results = await Promise.allSettled(names.map(action));
  const failures = results.flatMap((result) =>
    result.status === 'rejected' ? [result.reason as unknown] : [],
  );
  const [first] = failures;
  if (first === undefined) return;
  if (failures.length === 1 || !(first instanceof SkepError)) throw first;
  throw new SkepError(first.code, {
    message: `${failures.length} of ${names.length} failed; the first: ${first.message}`,
    hint: first.hint,
    detail: { failures: failures.map((one) => (one instanceof SkepError ? one.message : 'internal error')) },
  });
}

/** For what the supervisor ends even when nobody waits any more: a Ctrl-C only ends the waiting, and says so. */
export async function onlyWaiting(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!hasCode(error, 'run/cancelled')) throw error;
    throw new SkepError('run/cancelled', {
      message: 'not waited for',
      hint: 'what was begun goes on; see skep list --all',
      cause: error,
    });
  }
}
