import { hasCode } from '@skep/core/errors/skep-error.ts';
import type { Fact } from '../print/table.ts';
import type { ShownCounts, ToolCounts } from '../supervisor/protocol.ts';
import type { Context } from './context.ts';

const PATIENCE_MS = 2_000;

/**
 * What the proxies of the supervisor have counted of the tools of their workloads, by workload; nothing where none is up, nor
 * of what runs in the foreground, nor where it does not say in time. Nothing is started for it.
 */
export async function readToolCounts(context: Context): Promise<ShownCounts> {
  const [{ connect, exchange }, { readCounts }] = await Promise.all([
    import('../supervisor/connect.ts'),
    import('../supervisor/protocol.ts'),
  ]);
  const signal = AbortSignal.any([context.signal, AbortSignal.timeout(PATIENCE_MS)]);
  try {
    const connection = await connect(context, signal);
    context.signal.throwIfAborted();
    return connection ? readCounts(await exchange(connection, { op: 'counts' }, { signal })) : {};
  } catch (error) {
    context.signal.throwIfAborted();
    // One of another version does not know the question.
    if (signal.aborted || hasCode(error, 'supervisor/protocol') || hasCode(error, 'supervisor/unreachable'))
      return {};
    throw error;
  }
}

/** Of one tool, for scripts. */
export function toCountItems(counts: ToolCounts | undefined): readonly object[] | null {
  return (
    counts?.map(({ name, calls, errors, ms }) => ({
      tool: name,
      calls,
      errors,
      seconds: Math.round(ms) / 1_000,
    })) ?? null
  );
}

const MAX_SHOWN = 20;

/** A line for each tool, the most called first. */
export function countFacts(counts: ToolCounts | undefined): readonly Fact[] {
  const sorted = (counts ?? []).toSorted((one, other) => other.calls - one.calls);
  const lines = sorted.slice(0, MAX_SHOWN).map(({ name, ...count }) => `${name}: ${countText(count)}`);
  const more = sorted.length - MAX_SHOWN;
  const all = more > 0 ? [...lines, `and ${more} more: see --format json`] : lines;
  return all.map((line, at): Fact => [at === 0 ? 'Calls' : '', line]);
}

type Sum = Omit<ToolCounts[number], 'name'>;

function countText({ calls, errors, ms }: Sum): string {
  const failed = errors === 0 ? '' : `, ${errors} failed`;
  return `${calls}${failed}, ${timeOf({ calls, errors, ms })} each`;
}

function timeOf({ calls, ms }: Sum): string {
  const each = calls === 0 ? 0 : ms / calls;
  return each < 1_000 ? `${Math.round(each)} ms` : `${(each / 1_000).toFixed(1)} s`;
}

/** Calls, failures and time of a call, of all tools together; empty where nobody knows. */
export function countCells(
  counts: ToolCounts | undefined,
): readonly [calls: string, errors: string, time: string] {
  if (counts === undefined) return ['', '', ''];
  const sum = (member: keyof Sum): number => counts.reduce((all, one) => all + one[member], 0);
  const all = { calls: sum('calls'), errors: sum('errors'), ms: sum('ms') };
  return [`${all.calls}`, `${all.errors}`, all.calls === 0 ? '' : timeOf(all)];
}
