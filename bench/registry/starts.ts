import { median } from '../median.ts';
import type { Row } from '../row.ts';
import type { RegistryFolder } from './served.ts';

const ROUNDS = 3;
/** How many times as long as the least program that does it a start may take. */
const CEILING = 4;

interface Starts {
  readonly readyMs: number;
  readonly bareMs: number;
  readonly residentMB: number;
}

/**
 * Medians over starts of the registry and of the least program, in turns. First ones each find an empty store, which the last
 * leaves filled.
 */
export async function starts(
  folder: Pick<RegistryFolder, 'start' | 'bareStart' | 'emptyStores'>,
  { isFirst }: { readonly isFirst: boolean },
): Promise<Starts> {
  const figures: Starts[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    if (isFirst) await folder.emptyStores();
    const bareMs = await folder.bareStart();
    const registry = await folder.start();
    figures.push({ readyMs: registry.readyMs, bareMs, residentMB: await registry.residentMB() });
    await registry.stop();
  }
  return {
    readyMs: median(figures.map(({ readyMs }) => readyMs)),
    bareMs: median(figures.map(({ bareMs }) => bareMs)),
    residentMB: median(figures.map(({ residentMB }) => residentMB)),
  };
}

/** The time, which goes with the machine, and its ratio to that of the least program, which holds the gate. Milliseconds. */
export function reportStart(
  report: (row: Row) => void,
  what: string,
  { readyMs, bareMs }: Pick<Starts, 'readyMs' | 'bareMs'>,
  ceilingMs: number,
): void {
  report({ name: `registry: ${what}`, value: readyMs, unit: 'ms', ceiling: ceilingMs, onlyTold: 'time' });
  report({
    name: `registry: ${what} / bare program`,
    value: readyMs / bareMs,
    unit: 'ratio',
    ceiling: CEILING,
  });
}
