import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Context } from './context.ts';
import { openRuntime } from './open-runtime.ts';
import { refusedHosts, type Refused } from '../egress/refused.ts';
import { hostAndPort } from '../permissions/allowed-hosts.ts';
import type { Fact } from '../print/table.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import { lacksOf, type Lack } from '../supervisor/lacks.ts';
import { lastLines } from '../supervisor/ready.ts';

/** As many are shown to a person. */
const MAX_SHOWN = 10;
const ASK_MS = 5_000;
/** Of what a server wrote. */
const MAX_LINES = 200;
/** Of a host, which a server makes up. */
const MAX_HOST = 100;

/** What a workload was refused, and what it seems to lack by its own words. */
export interface Missed {
  readonly refused: readonly Refused[];
  readonly lacks: readonly Lack[];
}

/** Undefined where the runtime of the workload does not answer. */
export async function missedBy(config: RunConfig, context: Context): Promise<Missed | undefined> {
  try {
    const signal = AbortSignal.any([context.signal, AbortSignal.timeout(ASK_MS)]);
    const runtime = await openRuntime(context, { reference: config.runtime, signal });
    const isolated = config.isolate_network === true;
    const refused = isolated ? refusedHosts(await runtime.traffic(config.name), config) : [];
    const isThere = (await runtime.inspect(config.name)) !== undefined;
    const which = { count: MAX_LINES, stderrOnly: config.transport === 'stdio' };
    const lines = isThere ? await lastLines(runtime, config.name, which) : [];
    return { refused, lacks: await lacksOf(config, lines, context.home) };
  } catch (error) {
    if (error instanceof SkepError && !context.signal.aborted) return undefined;
    throw error;
  }
}

/** A line for each, with the command that would allow it. */
export function missedFacts(
  { name, isolate_network: isolated }: RunConfig,
  missed: Missed | undefined,
): readonly Fact[] {
  if (missed === undefined) {
    return isolated === true ? [['Refused', 'not known, because its runtime does not answer']] : [];
  }
  const { refused, lacks } = missed;
  const lines = refused.slice(0, MAX_SHOWN).map((one) => {
    const what = `${one.count} × ${shownHost(one)}`;
    return one.permit === undefined
      ? `${what} (${one.reason ?? 'no profile can allow it'})`
      : `${what} – ${one.permit}`;
  });
  const more = refused.length - MAX_SHOWN;
  const all = more > 0 ? [...lines, `and ${more} more: skep logs --denied ${name}`] : lines;
  return [
    ...all.map((line, at): Fact => [at === 0 ? 'Refused' : '', line, 'yellow']),
    ...lacks.map(({ what, permit }, at): Fact => [
      at === 0 ? 'May lack' : '',
      `${what} – ${permit}`,
      'yellow',
    ]),
  ];
}

/** The host with its port, no longer than a line. */
export function shownHost({ host, port }: Pick<Refused, 'host' | 'port'>): string {
  const short = host.length > MAX_HOST ? `${host.slice(0, MAX_HOST)}…` : host;
  return hostAndPort(short === '*' ? 'other hosts' : short, port);
}

/** As data, all of them, each with every key. */
export function refusedItems(refused: readonly Refused[]): readonly object[] {
  return refused.map(({ host, port, via, count, time, reason, permit }) => ({
    host,
    port: port ?? null,
    via,
    count,
    last: time,
    reason: reason ?? null,
    permit: permit ?? null,
  }));
}
