/** One measured figure. `floor`/`ceiling` is the target it must reach; exactly one of them is set. */
export interface Row {
  readonly name: string;
  readonly value: number;
  readonly unit: 'ratio' | 'ms' | 'MB' | 'per s';
  readonly floor?: number;
  readonly ceiling?: number;
  /**
   * Told in every run, and no reason for the gate to fail: the target is `owed`, not reached reliably so far, or it is a
   * `time`, whose ratio to a baseline is the next row.
   */
  readonly onlyTold?: 'owed' | 'time';
}

type Report = (row: Row) => void;

interface BenchOptions {
  /** Length of one measured round; subject and baseline alternate. */
  readonly seconds: number;
}

export type Bench = (report: Report, options: BenchOptions) => Promise<void>;

/**
 * How far beyond its target a figure may lie in the gate: other work shares the machine. A ratio has its baseline in the
 * same run and memory does not depend on load; a time and a rate go up and down with the machine.
 */
const TOLERANCE: Readonly<Record<Row['unit'], number>> = { ratio: 1.4, MB: 1.4, ms: 2, 'per s': 2 };

/** `met`, `missed` (but within tolerance) or `beyond tolerance`. */
export function verdict(row: Row): 'met' | 'missed' | 'beyond tolerance' {
  const excess = excessOf(row);
  if (excess <= 1) return 'met';
  return row.onlyTold || excess <= TOLERANCE[row.unit] ? 'missed' : 'beyond tolerance';
}

/** Of two runs of one bench, each row with the figure nearer to its target. */
export function betterOf(first: readonly Row[], second: readonly Row[]): readonly Row[] {
  return first.map((row) => {
    const other = second.find(({ name }) => name === row.name);
    return other && excessOf(other) < excessOf(row) ? other : row;
  });
}

/** The figure as a multiple of the worst value that meets the target. */
function excessOf(row: Row): number {
  return row.floor === undefined ? row.value / (row.ceiling ?? Infinity) : row.floor / row.value;
}
