import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import {
  bool,
  exactly,
  listOf,
  members,
  nullish,
  oneOf,
  orEmpty,
  text,
  wholeNumber,
  type Fail,
  type Shape,
  type ShapeType,
} from '@skep/core/settings/shape.ts';

/** What an authorization configuration says (docs/behaviour/proxy.md#authorization). */
export type AuthzRules = CedarRules | PdpRules;

export interface CedarRules {
  readonly type: 'cedarv1';
  /** Cedar, one policy each; the first is `policy0`. */
  readonly policies: readonly string[];
  /** In Cedar's JSON format, not looked into. */
  readonly entities: readonly unknown[];
  readonly groupClaim: string | undefined;
  readonly roleClaim: string | undefined;
  /** Of the entities that groups and roles are. */
  readonly groupType: string;
  /** Claims that are sets, however they are written. */
  readonly multiValued: readonly string[];
}

/** Somebody else decides: a policy decision point over HTTP. */
export interface PdpRules {
  readonly type: 'httpv1';
  /** Questions go to `<url>/decision`. */
  readonly url: URL;
  readonly timeoutMs: number;
  /** False where certificates are not checked. */
  readonly verify: boolean;
  readonly tells: { readonly args: boolean; readonly operation: boolean };
  readonly claims: 'mpe' | 'standard';
}

const DEFAULT_GROUP_TYPE = 'SkepGroup';
const DEFAULT_TIMEOUT_S = 30;
const MOST_TIMEOUT_S = 600;

/** YAML reads `1.0` as a number. */
const version: Shape<string> = (value, fail) => {
  const read = typeof value === 'number' ? String(value) : text(value, fail);
  return /^1(?:\.\d+)*$/u.test(read) ? read : fail('must be "1.0"');
};

const policies: Shape<readonly string[]> = (value, fail) => {
  const read = listOf(text)(value, fail);
  return read.length > 0 ? read : fail('holds no policy');
};

const entities: Shape<readonly unknown[]> = (value, fail) => {
  const read = nullish(text)(value, fail)?.trim() ?? '';
  if (read === '') return [];
  try {
    const parsed: unknown = JSON.parse(read);
    if (Array.isArray(parsed)) return parsed;
  } catch {
    // As of any other text.
  }
  return fail('is not the JSON text of a list of entities');
};

const groupType: Shape<string> = (value, fail) => {
  const read = nullish(text)(value, fail) || DEFAULT_GROUP_TYPE;
  return /^[A-Za-z_]\w*$/u.test(read) ? read : fail('is not a name of an entity type, without "::"');
};

const nobody: Shape<undefined> = (value, fail) =>
  nullish(text)(value, fail) ? fail('is not available: clients have one identity provider') : undefined;

const httpUrl: Shape<URL> = (value, fail) => {
  const url = URL.parse(text(value, fail));
  const isPlain = url?.username === '' && url.password === '';
  return url && isPlain && /^https?:$/u.test(url.protocol)
    ? url
    : fail('is not an http or https URL without credentials');
};

const cedar = exactly({
  policies,
  entities_json: entities,
  primary_upstream_provider: nobody,
  group_claim_name: nullish(text),
  role_claim_name: nullish(text),
  group_entity_type: groupType,
  multi_valued_claims: orEmpty(listOf(text), []),
});

const pdp = exactly({
  http: exactly({
    url: httpUrl,
    timeout: nullish(wholeNumber(0, MOST_TIMEOUT_S)),
    insecure_skip_verify: nullish(bool),
  }),
  context: nullish(exactly({ include_args: nullish(bool), include_operation: nullish(bool) })),
  claim_mapping: oneOf('mpe', 'standard'),
});

/**
 * Reads an authorization configuration, of Skep or of ToolHive. Fails with `usage/invalid-value` naming the member that is
 * wrong; one that is not known might be a guard, so it is wrong too.
 */
export function readRules(document: unknown): AuthzRules {
  const fail: Fail = (why, ...path) => {
    const where = path.length === 0 ? '' : `"${path.join('.')}" `;
    throw invalidRules(`${where}${why}`);
  };
  const type = members({ version, type: oneOf('cedarv1', 'httpv1') })(document, fail).type;
  const said = isRecord(document) ? { ...document } : {};
  if (type === 'httpv1') return pdpRules(exactly({ version, type: text, pdp })(said, fail).pdp);
  const read = exactly({ version, type: text, cedar })(said, fail).cedar;
  return {
    type,
    policies: read.policies,
    entities: read.entities_json,
    groupClaim: read.group_claim_name || undefined,
    roleClaim: read.role_claim_name || undefined,
    groupType: read.group_entity_type,
    multiValued: read.multi_valued_claims,
  };
}

export function invalidRules(message: string): SkepError {
  return new SkepError('usage/invalid-value', { message, hint: 'correct the authorization configuration' });
}

function pdpRules({ http, context, claim_mapping: claims }: ShapeType<typeof pdp>): PdpRules {
  return {
    type: 'httpv1',
    url: http.url,
    timeoutMs: (http.timeout || DEFAULT_TIMEOUT_S) * 1_000,
    verify: http.insecure_skip_verify !== true,
    tells: { args: context?.include_args === true, operation: context?.include_operation === true },
    claims,
  };
}
