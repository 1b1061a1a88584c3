import type { Identity } from '@skep/auth/token/identity.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { cedarValue, isRelevant, recordOf, type CedarRecord, type Relevant } from './cedar-values.ts';
import type { CedarValueJson, TypeAndId } from './cedar-engine.ts';
import type { CedarRules } from './rules.ts';

/** Claims that name groups, where the configuration names none. */
const GROUP_CLAIMS = ['groups', 'roles', 'cognito:groups'];

/** A caller as policies see it. */
export interface Caller {
  readonly uid: TypeAndId;
  readonly parents: readonly TypeAndId[];
  /** `claim_*`, those that count. */
  readonly claims: CedarRecord;
}

/** Undefined for a caller without a subject, whom no policy can name. */
export function callerOf(identity: Identity, rules: CedarRules, relevant: Relevant): Caller | undefined {
  const { subject, claims } = identity;
  if (subject === '' || !subject.isWellFormed()) return undefined;
  const groups = groupsOf(claims, rules).filter((one) => one.isWellFormed());
  return {
    uid: { type: 'Client', id: subject },
    parents: groups.map((id) => ({ type: rules.groupType, id })),
    claims: claimAttributes(claims, rules, relevant),
  };
}

type Claims = Identity['claims'];

function groupsOf(claims: Claims, { groupClaim, roleClaim }: CedarRules): readonly string[] {
  const named = groupClaim === undefined ? [] : textsOf(claimAt(claims, groupClaim));
  const usual = GROUP_CLAIMS.find((name) => Object.hasOwn(claims, name));
  const groups = named.length === 0 && usual !== undefined ? textsOf(claims[usual]) : named;
  const roles = roleClaim === undefined ? [] : textsOf(claimAt(claims, roleClaim));
  return [...new Set([...groups, ...roles])];
}

/** A claim by its name, dots and all, else by the path that the dots make of it. */
function claimAt(claims: Claims, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  let at: unknown = claims;
  for (const step of name.split('.')) {
    if (!isRecord(at) || !Object.hasOwn(at, step)) return undefined;
    at = at[step];
  }
  return at;
}

function textsOf(value: unknown): readonly string[] {
  const all: readonly unknown[] = Array.isArray(value) ? value : [value];
  return all.filter((one) => typeof one === 'string' && one !== '') as readonly string[];
}

function claimAttributes(claims: Claims, { multiValued }: CedarRules, relevant: Relevant): CedarRecord {
  const attributes = Object.entries(claims).flatMap(
    ([name, value]): readonly (readonly [string, CedarValueJson | undefined])[] => {
      const own = `claim_${name}`;
      const ownSet = `claimset_${name}`;
      if (!isRelevant(relevant, own) && !isRelevant(relevant, ownSet)) return [];
      if (!multiValued.includes(name)) return [[own, cedarValue(value)]];
      const set = cedarValue(typeof value === 'string' ? value.split(/\s+/u).filter(Boolean) : value);
      const texts = Array.isArray(set) ? set.filter((one) => typeof one === 'string') : [];
      return [
        [own, set],
        [ownSet, texts],
      ];
    },
  );
  return recordOf(attributes.filter(([name]) => isRelevant(relevant, name)));
}
