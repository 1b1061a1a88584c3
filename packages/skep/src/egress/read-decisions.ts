import { isRecord } from '@skep/core/json/is-record.ts';
import type { Decision } from './decision.ts';

/** Of one gateway at once: more than one can write (decision-log.ts), and fewer than whoever writes it could make up. */
const MAX_DECISIONS = 1_500;
const MAX_LINE_CHARACTERS = 4_096;
const MAX_TEXT_CHARACTERS = 400;

const DECISIONS = ['allowed', 'denied', 'not-found'] as const;
const WAYS = ['proxy', 'dns', 'direct', 'ingress'] as const;

/**
 * What the lines of a gateway say in all, newest last: one entry for each decision, host, port and way. Lines that are no
 * decision are left out; counts of gateways that followed each other are added up.
 */
export function readDecisions(text: string): readonly Decision[] {
  const all = new Map<string, { readonly before: number; readonly last: Decision }>();
  for (const line of text.split('\n')) {
    const decision = line.length > MAX_LINE_CHARACTERS ? undefined : decisionOf(line);
    if (decision === undefined) continue;
    const key = `${decision.decision} ${decision.via} ${decision.port ?? ''} ${decision.host}`;
    const known = all.get(key);
    // A count that goes down is that of a gateway that was started anew.
    const restarted = known !== undefined && decision.count < known.last.count;
    const before = (known?.before ?? 0) + (restarted ? known.last.count : 0);
    // Anew at the end, so that the first is the one that was told longest ago.
    all.delete(key);
    all.set(key, { before, last: decision });
    const [oldest] = all.size > MAX_DECISIONS ? all.keys() : [];
    if (oldest !== undefined) all.delete(oldest);
  }
  return [...all.values()]
    .map(({ before, last }) => ({ ...last, count: before + last.count }))
    .sort((one, other) => (one.time < other.time ? -1 : Number(one.time > other.time)));
}

function decisionOf(line: string): Decision | undefined {
  if (!line.startsWith('{')) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (!isRecord(value)) return undefined;
  const { time, host, port, reason, never, count } = value;
  const decision = DECISIONS.find((one) => one === value['decision']);
  const via = WAYS.find((one) => one === value['via']);
  if (decision === undefined || via === undefined || !isTime(time) || !isShortText(host)) return undefined;
  if (!isCount(count) || !(port === undefined || (isCount(port) && port <= 65_535))) return undefined;
  return {
    time,
    decision,
    host,
    ...(port === undefined ? {} : { port }),
    via,
    ...(isShortText(reason) ? { reason } : {}),
    ...(never === true ? { never } : {}),
    count,
  };
}

/** As the gateway writes it, so that times compare as text. */
function isTime(value: unknown): value is string {
  return typeof value === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value);
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1;
}

/** What may be shown as it is. */
function isShortText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_TEXT_CHARACTERS && !/[\p{C}]/u.test(value);
}
