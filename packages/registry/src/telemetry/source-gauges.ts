import type { ReadEngine } from '../engine/read-engine.ts';
import type { SourceGauge } from './registry-metrics.ts';

/** How many names of each kind every source serves now: counts of what lies in memory, so a scrape costs no query. */
export function sourceGauges(engine: ReadEngine): SourceGauge[] {
  return [...engine.blocks().values()].map(({ source, entries: { server, skill, plugin } }) => ({
    source,
    entries: { server: server.length, skill: skill.length, plugin: plugin.length },
  }));
}
