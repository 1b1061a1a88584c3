/** One measured figure. `floor`/`ceiling` is the target it must reach; exactly one of them is set. */
export interface Row {
  readonly name: string;
  readonly value: number;
  readonly unit: 'ratio' | 'ms' | 'MB' | 'per s';
  readonly floor?: number;
  readonly ceiling?: number;
}

type Report = (row: Row) => void;

interface BenchOptions {
  /** Length of one measured round; subject and baseline alternate. */
  readonly seconds: number;
}

export type Bench = (report: Report, options: BenchOptions) => Promise<void>;

/** How far beyond its target a figure may lie in the gate: other work shares the machine. */
const TOLERANCE = 2;

/** `met`, `missed` (but within tolerance) or `beyond tolerance`. */
export function verdict(row: Row): 'met' | 'missed' | 'beyond tolerance' {
  const excess = row.floor === undefined ? row.value / (row.ceiling ?? Infinity) : row.floor / row.value;
  if (excess <= 1) return 'met';
  return excess <= TOLERANCE ? 'missed' : 'beyond tolerance';
}
