import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Context } from './context.ts';
import { openRuntime } from './open-runtime.ts';
import { refusedHosts, type Refused } from '../egress/refused.ts';
import { hostAndPort } from '../permissions/allowed-hosts.ts';
import type { Fact } from '../print/table.ts';
import type { RunConfig } from '../run-config/run-config.ts';

/** As many are shown to a person. */
const MAX_SHOWN = 10;
const ASK_MS = 5_000;
/** Of a host, which a server makes up. */
const MAX_HOST = 100;

/** What the gateway of a workload refused; empty for one without. Undefined where its runtime does not say. */
export async function refusedTo(
  config: RunConfig,
  context: Context,
): Promise<readonly Refused[] | undefined> {
  if (config.isolate_network !== true) return [];
  try {
    const signal = AbortSignal.any([context.signal, AbortSignal.timeout(ASK_MS)]);
    const runtime = await openRuntime(context, { reference: config.runtime, signal });
    return refusedHosts(await runtime.traffic(config.name), config);
  } catch (error) {
    if (error instanceof SkepError && !context.signal.aborted) return undefined;
    throw error;
  }
}

/** A line for each, with the command that would allow it. */
export function refusedFacts(name: string, refused: readonly Refused[] | undefined): readonly Fact[] {
  if (refused === undefined) return [['Refused', 'not known, because its runtime does not answer']];
  const lines = refused.slice(0, MAX_SHOWN).map((one) => {
    const what = `${one.count} × ${shownHost(one)}`;
    return one.permit === undefined
      ? `${what} (${one.reason ?? 'no profile can allow it'})`
      : `${what} – ${one.permit}`;
  });
  const more = refused.length - MAX_SHOWN;
  const all = more > 0 ? [...lines, `and ${more} more: skep logs --denied ${name}`] : lines;
  return all.map((line, at): Fact => [at === 0 ? 'Refused' : '', line, 'yellow']);
}

/** The host with its port, no longer than a line. */
export function shownHost({ host, port }: Pick<Refused, 'host' | 'port'>): string {
  const short = host.length > MAX_HOST ? `${host.slice(0, MAX_HOST)}…` : host;
  return hostAndPort(short === '*' ? 'other hosts' : short, port);
}

/** As data, all of them; null where there is none. */
export function refusedItems(refused: readonly Refused[] | undefined): readonly object[] | null {
  return (
    refused?.map(({ host, port, via, count, time, reason, permit }) => ({
      host,
      port: port ?? null,
      via,
      count,
      last: time,
      reason: reason ?? null,
      permit: permit ?? null,
    })) ?? null
  );
}
