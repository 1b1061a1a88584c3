import { createHash } from 'node:crypto';
import type { Identity } from '@skep/auth/token/identity.ts';
import type { Log } from '@skep/core/log/log.ts';
import { LRUCache } from 'lru-cache';
import { callerOf, type Caller } from './caller.ts';
import {
  loadCedar,
  type CedarEngine,
  type EntityJson,
  type Response,
  type TypeAndId,
} from './cedar-engine.ts';
import { argumentAttributes, isRelevant, recordOf, type Relevant } from './cedar-values.ts';
import { reportPolicies, type PolicyReport, type Request } from './cedar-report.ts';
import { HINTS, OPERATIONS, type Authorizer, type Question } from './question.ts';
import { relevantTo } from './relevant.ts';
import { invalidRules, type CedarRules } from './rules.ts';

/** What came of one question. */
export interface Verdict {
  readonly allowed: boolean;
  /** Policies that decided, as `policy0`; none where no policy permits. */
  readonly decidedBy: readonly string[];
  /** Policies that could not be evaluated; each of them alone denies. */
  readonly errors: readonly { readonly policy: string; readonly message: string }[];
}

/** With what each policy says of it. */
export interface Explanation extends Verdict {
  /** The caller as policies see it; undefined for one without a subject, who may use nothing. */
  readonly caller: Pick<Caller, 'uid' | 'parents'> | undefined;
  readonly policies: readonly PolicyReport[];
}

export interface CedarAuthorizer extends Authorizer {
  /** Decides anew, and tells why. */
  readonly explain: (identity: Identity, question: Question) => Explanation;
  /** The attributes that policies name. */
  readonly relevant: Relevant;
}

interface CedarServices {
  /** The workload, which tools, prompts and resources are of. */
  readonly name: string;
  readonly log: Log;
}

/** Callers whose decisions are cached, and decisions of each. */
const MAX_CALLERS = 500;
const MAX_DECISIONS = 5_000;
/** A longer question is decided each time. */
const MAX_KEY_CHARACTERS = 512;

const DENIED: Verdict = { allowed: false, decidedBy: [], errors: [] };

/**
 * Decides by Cedar's policies, which are parsed once. A decision depends on nothing but the policies, what they name of the
 * caller's claims, and the question, so it is cached under these (decision 0341). Fails with `usage/invalid-value` for what
 * Cedar cannot read.
 */
export async function openCedar(rules: CedarRules, { name, log }: CedarServices): Promise<CedarAuthorizer> {
  const cedar = await loadCedar();
  const relevant = relevantTo(parsePolicies(cedar, rules.policies));
  const policies = prepare(cedar, rules.policies);
  const entities = readEntities(cedar, rules.entities);
  const inTerms = (caller: Caller, question: Question): Request | undefined => {
    const terms = termsOf(caller, question, { server: name, relevant });
    if (terms === undefined) return undefined;
    const { principal, action, resource, context } = terms;
    return {
      principal: principal.uid,
      action: action.uid,
      resource: resource.uid,
      context,
      entities: merged(entities, [principal, action, resource]),
      validateRequest: false,
    };
  };
  const evaluate = (caller: Caller, question: Question): Verdict => {
    try {
      const asked = inTerms(caller, question);
      if (asked === undefined) return DENIED;
      const answer = cedar.statefulIsAuthorized({ ...asked, preparsedPolicySetId: policies });
      if (answer.type === 'success') return verdictOf(answer.response);
      log.error({ errors: answer.errors.map(({ message }) => message) }, 'a request could not be authorized');
    } catch (err) {
      log.error({ err }, 'a request could not be authorized');
    }
    return DENIED;
  };
  const keyOf = keysFor(relevant);
  const known = new WeakMap<Identity, (question: Question) => boolean>();
  const byClaims = new LRUCache<string, LRUCache<string, boolean>>({ max: MAX_CALLERS });

  const decider = (identity: Identity): ((question: Question) => boolean) => {
    const caller = callerOf(identity, rules, relevant);
    if (caller === undefined) return () => false;
    const claims = JSON.stringify(caller);
    const decisions = byClaims.get(claims) ?? new LRUCache<string, boolean>({ max: MAX_DECISIONS });
    byClaims.set(claims, decisions);
    return (question) => {
      const key = keyOf(question);
      const cached = key === undefined ? undefined : decisions.get(key);
      if (cached !== undefined) return cached;
      const { allowed } = evaluate(caller, question);
      if (key !== undefined) decisions.set(key, allowed);
      return allowed;
    };
  };
  return {
    relevant,
    // The context holds none of them.
    heedsHints: HINTS.some((hint) => relevant.names.has(hint)),
    decideFor(identity) {
      const decide = known.get(identity) ?? decider(identity);
      known.set(identity, decide);
      return decide;
    },
    explain(identity, question) {
      const caller = callerOf(identity, rules, relevant);
      const asked = caller && inTerms(caller, question);
      if (caller === undefined || asked === undefined) return { ...DENIED, caller, policies: [] };
      const reports = reportPolicies(cedar, rules.policies, asked);
      return { ...evaluate(caller, question), caller, policies: reports };
    },
  };
}

/** Cedar's JSON of each policy. */
function parsePolicies(cedar: CedarEngine, texts: readonly string[]): readonly unknown[] {
  return texts.map((text, index) => {
    const answer = cedar.policyToJson(text);
    if (answer.type === 'success') return answer.json;
    const [error] = answer.errors;
    const at = error?.sourceLocations?.[0]?.start;
    throw invalidRules(`policy ${index}: ${error?.message ?? 'cannot be read'}${placeIn(text, at)}`);
  });
}

function placeIn(text: string, offset: number | undefined): string {
  if (offset === undefined) return '';
  // Cedar counts bytes.
  const before = Buffer.from(text).subarray(0, offset).toString().split('\n');
  return ` at line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
}

/** Under a name of their own content, because Cedar forgets none. */
function prepare(cedar: CedarEngine, texts: readonly string[]): string {
  const id = createHash('sha256').update(JSON.stringify(texts)).digest('hex');
  const staticPolicies = Object.fromEntries(texts.map((text, index) => [`policy${index}`, text]));
  const answer = cedar.preparsePolicySet(id, { staticPolicies });
  if (answer.type === 'failure') throw invalidRules(answer.errors[0]?.message ?? 'policies cannot be read');
  return id;
}

function readEntities(cedar: CedarEngine, entities: readonly unknown[]): ReadonlyMap<string, EntityJson> {
  const given = entities as readonly EntityJson[];
  const answer = cedar.checkParseEntities({ entities: [...given] });
  if (answer.type === 'failure')
    throw invalidRules(`"cedar.entities_json": ${answer.errors[0]?.message ?? 'cannot be read'}`);
  return new Map(given.map((entity) => [uidKey(uidOf(entity)), entity]));
}

function uidOf({ uid }: EntityJson): TypeAndId {
  return '__entity' in uid ? uid.__entity : uid;
}

function uidKey({ type, id }: TypeAndId): string {
  return JSON.stringify([type, id]);
}

interface Terms {
  readonly principal: EntityJson;
  readonly action: EntityJson;
  readonly resource: EntityJson;
  readonly context: EntityJson['attrs'];
}

/** The question in Cedar's terms; undefined for a name that it cannot have, and for arguments that occur twice. */
function termsOf(
  { uid, parents, claims }: Caller,
  { kind, id, args, hints }: Question,
  { server, relevant }: { readonly server: string; readonly relevant: Relevant },
): Terms | undefined {
  const { operation, action } = OPERATIONS[kind];
  const given = argumentAttributes(args, relevant);
  if (id === '' || !id.isWellFormed() || given === undefined) return undefined;
  const own = kind === 'resource' ? { uri: id } : {};
  return {
    principal: { uid, attrs: { ...claims }, parents: [...parents] },
    action: { uid: { type: 'Action', id: action }, attrs: { operation: action }, parents: [] },
    resource: {
      uid: { type: `${kind.charAt(0).toUpperCase()}${kind.slice(1)}`, id },
      attrs: recordOf(
        Object.entries({ ...hints, ...given, ...own, name: id, operation, feature: kind }).filter(([name]) =>
          isRelevant(relevant, name),
        ),
      ),
      parents: [{ type: 'MCP', id: server }],
    },
    context: { ...claims, ...given },
  };
}

/** What is asked now counts before what the configuration says of the same entity; parents are both's. */
function merged(entities: ReadonlyMap<string, EntityJson>, asked: readonly EntityJson[]): EntityJson[] {
  if (entities.size === 0) return [...asked];
  const all = new Map(entities);
  for (const entity of asked) {
    const key = uidKey(uidOf(entity));
    const given = entities.get(key);
    const parents = [...entity.parents, ...(given?.parents ?? [])];
    all.set(key, given ? { ...given, attrs: { ...given.attrs, ...entity.attrs }, parents } : entity);
  }
  return [...all.values()];
}

function verdictOf({ decision, diagnostics: { reason, errors } }: Response): Verdict {
  return {
    allowed: decision === 'allow' && errors.length === 0,
    decidedBy: reason.toSorted(),
    errors: errors.map(({ policyId, error }) => ({ policy: policyId, message: error.message })),
  };
}

/** All that counts of a question; undefined for one that is too long to be worth keeping. */
function keysFor(relevant: Relevant): (question: Question) => string | undefined {
  const heeded = HINTS.filter((hint) => isRelevant(relevant, hint));
  const countArguments = namesArguments(relevant);
  return ({ kind, id, args, hints }) => {
    let said = '';
    for (const hint of heeded) said += `${hints?.[hint] ?? '-'},`;
    // What can hold anything comes last, and the other with its length.
    const asked = args === undefined || !countArguments ? '' : args;
    const key = `${kind} ${said}${asked.length} ${asked}${id}`;
    return key.length > MAX_KEY_CHARACTERS ? undefined : key;
  };
}

function namesArguments(relevant: Relevant): boolean {
  return relevant.isAll || [...relevant.names].some((name) => name.startsWith('arg_'));
}
