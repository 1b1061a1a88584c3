import { ROLES, type Role, type RoleTrace, type RuleMismatch } from '@skep/auth/claims/roles.ts';
import type { ArrayMatch, UncoveredClaim } from '@skep/auth/claims/covers.ts';
import { decideRead } from './admin-scope.ts';
import { type Authority, type CallerRecord, describeCaller, modeOf } from './authority.ts';
import { storedClaims, type ClaimSet } from './claim-set.ts';
import { firstRefusal, type AllowReason, type Decision, type Deny } from './decision.ts';
import { decideGate, decideRole } from './gate.ts';
import { decidePublish, type PublishRequest } from './publish-rules.ts';
import { decideVisibility } from './visibility.ts';

/** A decision in words: why it fell, and what would change it. For `skep-registry explain`, never for a refused caller. */
export interface Explanation {
  readonly allowed: boolean;
  /** The reason code of the decision. */
  readonly reason: Decision['reason'];
  /** The claim or rule key that decided, where one did. */
  readonly key?: string;
  readonly because: string;
  /** Absent where the answer is yes. */
  readonly remedy?: string;
}

const BECAUSE: Readonly<Record<AllowReason, string>> = {
  'authz-off': 'no authorization is configured in this mode',
  'super-admin': 'the caller is super-admin',
  'role-held': 'the caller has the role',
  'unlabeled-is-open': 'the resource has no claims and is open to every signed-in caller',
  'claims-covered': 'the caller holds every claim of the resource',
  'all-passed': 'every check passed',
};

/**
 * Whether an explanation holds the claim values that rules and resources ask for, or says which key decided only: the
 * values tell which claims would open what is closed.
 */
export type Shown = 'values' | 'keys';

/** Renders what a decision recorded; decides nothing itself. */
export function explain(decision: Decision, shown: Shown = 'values'): Explanation {
  return decision.allowed
    ? { allowed: true, reason: decision.reason, because: BECAUSE[decision.reason] }
    : { allowed: false, reason: decision.reason, ...refusal(decision, shown) };
}

type Refusal = Pick<Explanation, 'key' | 'because' | 'remedy'>;

function refusal(decision: Deny, shown: Shown): Refusal {
  if (decision.reason === 'claims-not-covered') return uncovered(decision.uncovered, shown);
  if (decision.reason === 'role-missing') return roleMissing(decision.role, decision.trace, shown);
  if (decision.reason !== 'claims-differ') return PLAIN[decision.reason];
  return {
    key: decision.key,
    because: `claim ${quoted(decision.key)} differs from the entry's first version`,
    remedy: 'send exactly the claims of the first version, or change the claims of the entry',
  };
}

type TracedReason = 'claims-not-covered' | 'role-missing' | 'claims-differ';

const PLAIN: Readonly<Record<Exclude<Deny['reason'], TracedReason>, Refusal>> = {
  'claims-corrupt': {
    because: 'the stored claims are no map of strings',
    remedy: 'write the claims of the resource again',
  },
  'unlabeled-is-closed': {
    because: 'the resource has no claims, so only super-admins satisfy it',
    remedy: 'give the resource claims',
  },
  'last-claim-dropped': {
    because: 'without its last claim the resource would be open to every signed-in caller',
    remedy: 'keep one claim, or act as super-admin',
  },
  'config-created': {
    because: 'the resource comes from the configuration file',
    remedy: 'change the configuration file',
  },
  'claims-omitted': { because: 'a publish request must carry claims here', remedy: 'add claims' },
  'version-taken': { because: 'the version exists', remedy: 'publish under a new version' },
  'no-managed-source': { because: 'no managed source takes the entry', remedy: 'configure a managed source' },
};

function roleMissing(role: Role, trace: RoleTrace, shown: Shown): Refusal {
  const mismatches = trace.granted ? [] : trace.mismatches.map((one) => mismatch(one, shown));
  return {
    because: `no rule grants ${role}: ${mismatches.join('; ') || 'none is configured'}`,
    remedy: `satisfy one rule of auth.authz.roles.${role}`,
  };
}

function uncovered({ key, reason, lacking, match }: UncoveredClaim, shown: Shown): Refusal {
  const claim = `claim ${quoted(key)}`;
  if (reason === 'corrupt') {
    return {
      key,
      because: `${claim} of the resource is no string and no list of strings`,
      remedy: 'write the claims of the resource again',
    };
  }
  const isShown = shown === 'values';
  const values = lacking.map(quoted).join(', ');
  return {
    key,
    because:
      reason === 'missing'
        ? `the caller has no ${claim}`
        : `${claim} of the caller lacks ${isShown ? values : 'a value'}`,
    remedy: isShown ? needed(values, lacking, match) : `another value of the ${claim}`,
  };
}

function needed(values: string, lacking: readonly string[], match: UncoveredClaim['match']): string {
  if (lacking.length === 0) return 'a claim of that name with any value';
  if (lacking.length === 1) return `the value ${values}`;
  return match === 'all' ? `all of ${values}` : `one of ${values}`;
}

function mismatch(one: RuleMismatch, shown: Shown): string {
  if (one.reason === 'empty-rule') return 'an empty rule never matches';
  if (one.reason === 'not-of-this-provider') {
    return 'a rule matches, but the identity provider of the token may not grant this role';
  }
  const wanted = shown === 'keys' ? 'the values of a rule' : one.wanted.map(quoted).join(', ') || 'no values';
  return `claim ${quoted(one.key)} has none of ${wanted}`;
}

/** JSON keeps control characters of a hostile claim out of the terminal. */
function quoted(text: string): string {
  return JSON.stringify(text);
}

/** Something that carries claims, and its name. */
interface Labelled {
  readonly name: string;
  readonly claims: ClaimSet;
}

/** What is asked about. Copies of the entry stand in order of the registry's sources, the highest priority first. */
export interface AccessFacts {
  readonly registry?: Labelled;
  readonly source?: Labelled;
  readonly entry?: { readonly name: string; readonly copies: readonly EntryCopy[] };
  /** What somebody would publish, at the door of `registry` where there is one. */
  readonly publish?: { readonly shown: string; readonly request: PublishRequest };
}

/** One source's entry of the name. */
export interface EntryCopy {
  readonly source: string;
  readonly claims: ClaimSet;
}

/** One decision about a caller, in words. */
interface AccessFinding extends Explanation {
  readonly layer: 'role' | 'registry' | 'source' | 'entry' | 'publish';
  /** The role, registry, source, entry or version that it is about. */
  readonly subject: string;
  /** Of an entry: whose copy. */
  readonly source?: string;
  /** Of a copy that the caller may see: whose copy is served instead. */
  readonly shadowedBy?: string;
}

/** What `explain` answers, on the command line and over HTTP. */
export interface AccessReport {
  readonly mode: 'anonymous' | 'auth-only' | 'full';
  readonly caller: CallerRecord;
  readonly findings: readonly AccessFinding[];
  /** Of a publish in mode `full`: whether readers need all of several values of one claim, or any. */
  readonly arrayMatch?: ArrayMatch;
}

/**
 * What the enforcing functions say about a caller, layer by layer (docs/behaviour/registry.md#order-of-checks): roles,
 * the registry's gate, the source as the admin API scopes it, every copy of the entry, and a publish as all that is asked of it.
 */
export function accessReport(
  authority: Authority,
  { registry, source, entry, publish }: AccessFacts,
  shown: Shown = 'values',
): AccessReport {
  const found = (about: Pick<AccessFinding, 'layer' | 'subject' | 'source'>, decision: Decision) => ({
    ...about,
    ...explain(decision, shown),
  });
  const findings: AccessFinding[] = ROLES.map((role) =>
    found({ layer: 'role', subject: role }, decideRole(authority, role)),
  );
  if (registry !== undefined) {
    const decision = decideGate(authority, storedClaims(registry.claims));
    findings.push(found({ layer: 'registry', subject: registry.name }, decision));
  }
  if (source !== undefined) {
    const decision = decideRead(authority, storedClaims(source.claims));
    findings.push(found({ layer: 'source', subject: source.name }, decision));
  }
  let served: string | undefined;
  for (const copy of entry?.copies ?? []) {
    const decision = decideVisibility(authority, copy.claims);
    const finding = found({ layer: 'entry', subject: entry?.name ?? '', source: copy.source }, decision);
    const { allowed } = decision;
    findings.push(allowed && served !== undefined ? { ...finding, shadowedBy: served } : finding);
    // Copies shadow each other within a registry only.
    if (allowed && registry !== undefined) served ??= copy.source;
  }
  if (publish !== undefined) {
    const decision = firstRefusal([
      () => decideRole(authority, 'manageEntries'),
      ...(registry === undefined ? [] : [() => decideGate(authority, storedClaims(registry.claims))]),
      () => decidePublish(authority, publish.request),
    ]);
    findings.push(found({ layer: 'publish', subject: publish.shown }, decision));
  }
  return {
    mode: modeOf(authority).kind,
    caller: authority.kind === 'anonymous' ? { subject: '', roles: [] } : describeCaller(authority),
    findings,
    ...(publish === undefined || authority.kind !== 'full'
      ? {}
      : { arrayMatch: authority.switches.arrayMatch }),
  };
}
