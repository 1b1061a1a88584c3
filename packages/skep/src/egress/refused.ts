import { SkepError } from '@skep/core/errors/skep-error.ts';
import { hostAndPort } from '../permissions/allowed-hosts.ts';
import { permitHost, type Networked } from '../permissions/change-hosts.ts';
import { hostProblem } from '../permissions/host-rule.ts';
import { parseRight } from '../permissions/right.ts';
import type { Decision } from './decision.ts';

/** A host that the gateway of a workload refused, in all ways that were tried. */
export interface Refused {
  readonly host: string;
  /** Absent where only its name was asked for. */
  readonly port?: number;
  readonly count: number;
  /** RFC 3339, of the last one. */
  readonly time: string;
  readonly via: Decision['via'];
  readonly reason?: string;
  /** The command line that would allow it; absent where nothing does. */
  readonly permit?: string;
}

/** Programs that ask for a name alone mean HTTPS more often than anything else. */
const USUAL_PORT = 443;

/**
 * What was refused to a workload, the most frequent first, then the newest, then by host and port. A name that was asked for and then connected to
 * counts as the connection. Hosts come from a hostile server: only a real one, that `skep permit` takes, gets a line.
 */
export function refusedHosts(decisions: readonly Decision[], config: Networked): readonly Refused[] {
  const merged = new Map<string, Decision>();
  for (const decision of decisions) {
    if (decision.decision !== 'denied') continue;
    const { host, port, via } = decision;
    const key = JSON.stringify([host, port, via === 'ingress']);
    const known = merged.get(key);
    const newest = known === undefined || known.time <= decision.time ? decision : known;
    merged.set(key, { ...newest, count: (known?.count ?? 0) + decision.count });
  }
  const all = [...merged.values()];
  const connected = new Set(all.flatMap(({ host, port }) => (port === undefined ? [] : [host])));
  return all
    .filter(({ via, host }) => via !== 'dns' || !connected.has(host))
    .toSorted((one, other) => other.count - one.count || compare(other.time, one.time) || byHost(one, other))
    .map((decision) => toRefused(decision, config));
}

const compare = (one: string, other: string): number => (one < other ? -1 : Number(one > other));

const byHost = (one: Decision, other: Decision): number =>
  compare(one.host, other.host) || (one.port ?? 0) - (other.port ?? 0) || compare(one.via, other.via);

function toRefused(decision: Decision, config: Networked): Refused {
  const { host, port, count, time, via, reason } = decision;
  const permit = permitLine(decision, config);
  return {
    host,
    ...(port === undefined ? {} : { port }),
    count,
    time,
    via,
    ...(reason === undefined ? {} : { reason }),
    ...(permit === undefined ? {} : { permit }),
  };
}

/** Undefined for what `skep permit` would refuse, or what it would not change. */
function permitLine({ host, port, via, never }: Decision, config: Networked): string | undefined {
  if (never === true || via === 'ingress' || hostProblem(host) !== undefined || host.startsWith('.'))
    return undefined;
  const text = hostAndPort(host, port ?? USUAL_PORT);
  try {
    const right = parseRight(text, '/');
    // The gateway saw where it leads to; a profile that covers the name refuses only what is private.
    if (right.is !== 'host' || permitHost(config, right, { leadsToPrivate: true }).config === config)
      return undefined;
    return `skep permit ${config.name} ${text}`;
  } catch (error) {
    if (error instanceof SkepError) return undefined;
    throw error;
  }
}
