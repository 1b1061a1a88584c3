import { SkepError, hasCode } from '@skep/core/errors/skep-error.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { parseSelectors } from '../run-config/labels.ts';
import { viewWorkloads, type ViewDeps, type WorkloadView } from './view.ts';

/** Flags of commands that act on several workloads. */
export const selectionSettings = settingsOf({ group: 'Selection' }, [
  flag('bool', 'all', 'All servers', { short: 'a', default: false, excludes: ['group', 'label'] }),
  flag('string', 'group', 'All servers of a group', { short: 'g', placeholder: 'group', offers: 'group' }),
  flag('list', 'label', 'All servers with this label; repeatable, all of them must match', {
    short: 'l',
    placeholder: 'key=value',
    offers: 'label',
  }),
]);

interface SelectionFlags {
  readonly all: boolean;
  readonly group: string | undefined;
  readonly label: readonly string[] | undefined;
}

export interface Selection {
  /** As the person gave them, each once; empty where flags select. */
  readonly names: readonly string[];
  readonly all: boolean;
  readonly group: string | undefined;
  /** True for what the flags mean. */
  readonly matches: (view: Pick<WorkloadView, 'group' | 'labels' | 'status'>) => boolean;
  /** What the flags mean, for a sentence: ` in group 'team'`; empty for `--all`. */
  readonly where: string;
}

const CHOOSE_ONE = {
  nothing: 'must specify either a workload name, --all, --group or --label',
  both: (named: string) => `cannot specify both a workload name and ${named}`,
  hint: 'see the names with skep list --all',
};

/** The sentences of a command whose selection is nothing, or contradicts itself. */
const SENTENCES = {
  start: CHOOSE_ONE,
  stop: {
    nothing: 'at least one workload name must be provided',
    both: (named: string) => `no arguments should be provided with ${named}`,
    hint: 'see the names with skep list, or use skep stop --all',
  },
  upgrade: CHOOSE_ONE,
  rm: {
    nothing: 'at least one workload name must be provided',
    both: (named: string) => `no arguments should be provided with ${named}`,
    hint: 'see the names with skep list --all, or use skep rm --all to remove all',
  },
} as const;

/**
 * What the person selected (docs/behaviour/run.md#selecting-workloads). Fails with `usage/*` when it is nothing or
 * contradicts itself, and with `group/not-found`.
 */
export async function checkSelection(
  names: readonly string[],
  flags: SelectionFlags,
  { command, places }: Pick<ViewDeps, 'places'> & { readonly command: keyof typeof SENTENCES },
): Promise<Selection> {
  const { all, group, label } = flags;
  const sentences = SENTENCES[command];
  const named = [
    all ? '--all' : undefined,
    group === undefined ? undefined : '--group',
    label === undefined ? undefined : '--label',
  ].find((one) => one !== undefined);
  if (names.length > 0 && named !== undefined) {
    throw new SkepError('usage/unexpected-argument', {
      message: sentences.both(named),
      hint: `give names, or ${named}, not both`,
    });
  }
  if (names.length === 0 && named === undefined) {
    throw new SkepError('usage/missing-argument', { message: sentences.nothing, hint: sentences.hint });
  }
  const filter = filterOf(flags);
  if (group !== undefined) {
    // Loaded where it is needed: `list` shares this file.
    const { requireGroup } = await import('../run-config/group-file.ts');
    await requireGroup(places, group);
  }
  return { names: [...new Set(names)], all, group, ...filter };
}

/** What `--group` and `--label` mean together: both have to hold. Fails with `usage/invalid-value` for what is no label. */
export function filterOf({
  group,
  label = [],
}: Pick<SelectionFlags, 'group' | 'label'>): Pick<Selection, 'matches' | 'where'> {
  const wanted = parseSelectors(label);
  const isNarrow = group !== undefined || wanted.length > 0;
  const labels = wanted.map(([key, value]) => `${key}=${value}`).join(', ');
  return {
    // Of damaged ones nobody knows the group; they go by name, and with all.
    matches: (view) =>
      !(isNarrow && view.status === 'unknown') &&
      (group === undefined || view.group === group) &&
      wanted.every(([key, value]) => Object.hasOwn(view.labels, key) && view.labels[key] === value),
    where: [group === undefined ? '' : ` in group '${group}'`, labels && ` with label ${labels}`].join(''),
  };
}

/** The names that were given, or those of all workloads that the flags mean. */
export async function selectedNames(
  { names, matches }: Pick<Selection, 'names' | 'matches'>,
  deps: ViewDeps,
): Promise<readonly string[]> {
  if (names.length > 0) return names;
  return (await viewWorkloads(deps)).filter(matches).map(({ name }) => name);
}

/** As many workloads are worked on at once. */
const AT_ONCE = 8;

/** One workload that could not be worked on. */
export interface Failure {
  readonly name: string;
  readonly error: unknown;
}

/** Does the same to several workloads, a few at once, and goes on past those that fail; answers with these. */
export async function tryEach(
  names: readonly string[],
  action: (name: string) => Promise<void>,
): Promise<readonly Failure[]> {
  const failures: Failure[] = [];
  const waiting = names.values();
  const work = async (): Promise<void> => {
    for (const name of waiting) {
      try {
        await action(name);
      } catch (error) {
        failures.push({ name, error });
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  // In the order they were asked for, however long each took.
  return failures.toSorted((one, other) => names.indexOf(one.name) - names.indexOf(other.name));
}

/** Fails with the first failure, naming how many there were of `total`. */
export function throwFirst(failures: readonly Failure[], total: number): void {
  const [first] = failures;
  if (first === undefined) return;
  const { error } = first;
  if (failures.length === 1 || !(error instanceof SkepError)) throw error;
  throw new SkepError(error.code, {
    message: `${failures.length} of ${total} failed; the first: ${error.message}`,
    hint: error.hint,
    detail: { failures: failures.map(messageOf) },
  });
}

/** Why it failed, in one line; a defect is not shown to its end. */
export function messageOf({ error }: Failure): string {
  return error instanceof SkepError ? error.message : 'internal error';
}

/** Does the same to several workloads at once; afterwards fails with the first failure, naming how many there were. */
export async function eachOf(
  names: readonly string[],
  action: (name: string) => Promise<void>,
): Promise<void> {
  throwFirst(await tryEach(names, action), names.length);
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
