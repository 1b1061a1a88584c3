import type { Identity } from '@skep/auth/token/identity.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { limitedField } from '@skep/core/audit/audit-event.ts';
import { member } from '../message/json-rpc.ts';

/** On whose behalf a token is used by whom (RFC 8693 §4.1). */
export interface Delegation {
  /** Newest first. */
  readonly chain: readonly Readonly<Record<string, string>>[];
  readonly truncated: boolean;
  /** Actors beyond those of the chain, as far as they were counted. */
  readonly omitted?: number;
  /** Somebody in it is told in a way that the standard does not have; the chain ends before. */
  readonly malformed?: true;
  readonly malformedReason?: string;
}

/** Nobody looks further. */
const MAX_COUNTED = 100;

/** Undefined for a token that nobody handed on. */
export function delegationOf({ claims }: Pick<Identity, 'claims'>, maxDepth = 10): Delegation | undefined {
  const chain: Record<string, string>[] = [];
  let omitted = 0;
  let actor = member(claims, 'act');
  if (actor === undefined) return undefined;
  for (; isActor(actor) && chain.length + omitted < MAX_COUNTED; actor = member(actor, 'act')) {
    if (chain.length < maxDepth) chain.push(namesOf(actor));
    else omitted += 1;
  }
  const reason = actor === undefined || isActor(actor) ? undefined : faultOf(actor);
  return {
    chain,
    truncated: omitted > 0,
    ...(omitted > 0 && { omitted }),
    ...(reason !== undefined && { malformed: true, malformedReason: reason }),
  };
}

type Actor = Readonly<Record<string, unknown>>;

function isActor(value: unknown): value is Actor {
  return isRecord(value) && ['iss', 'sub'].some((name) => isName(member(value, name)));
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function namesOf(actor: Actor): Record<string, string> {
  const names: Record<string, string> = {};
  for (const name of ['iss', 'sub']) {
    const value = member(actor, name);
    if (isName(value)) names[name] = limitedField(value);
  }
  return names;
}

function faultOf(value: unknown): string {
  return isRecord(value) ? 'an actor has neither iss nor sub' : 'an actor is no object';
}
