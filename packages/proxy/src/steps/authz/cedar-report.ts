import type { AuthorizationCall, CedarEngine, Clause, Expr, PolicyJson } from './cedar-engine.ts';

/** A question as Cedar is asked. */
export type Request = Omit<AuthorizationCall, 'policies'>;

/** What one policy says of one question. */
export interface PolicyReport {
  /** `policy0`, by its place. */
  readonly policy: string;
  readonly effect: 'permit' | 'forbid';
  /** `@id("…")`, where it has one. */
  readonly id?: string;
  /** It speaks of this question. */
  readonly applies: boolean;
  /** Cedar, one condition each: what would have to hold for it to apply. */
  readonly unmet: readonly string[];
  /** Why it cannot be evaluated. */
  readonly error?: string;
}

const ANY = {
  principal: { op: 'All' },
  action: { op: 'All' },
  resource: { op: 'All' },
  conditions: [],
} as const;
const SCOPE = ['principal', 'action', 'resource'] as const;

/**
 * Asks each policy alone, then each of its conditions: Cedar itself says what holds, so a report cannot differ from a
 * decision. A condition that another one guards may be told beside it.
 */
export function reportPolicies(
  cedar: CedarEngine,
  texts: readonly string[],
  request: Request,
): readonly PolicyReport[] {
  const holds = (policy: PolicyJson): boolean | string => {
    const one = { ...policy, effect: 'permit' as const };
    const answer = cedar.isAuthorized({ ...request, policies: { staticPolicies: { one } } });
    if (answer.type === 'failure') return answer.errors[0]?.message ?? 'cannot be evaluated';
    const [error] = answer.response.diagnostics.errors;
    return error === undefined ? answer.response.decision === 'allow' : error.error.message;
  };
  return texts.flatMap((text, index): readonly PolicyReport[] => {
    const parsed = cedar.policyToJson(text);
    if (parsed.type === 'failure') return [];
    const { json } = parsed;
    const whole = holds(json);
    const unmet = whole === true ? [] : partsOf(json).filter((part) => holds(part) !== true);
    const id = json.annotations?.['id'];
    return [
      {
        policy: `policy${index}`,
        effect: json.effect,
        ...(id ? { id } : {}),
        applies: whole === true,
        unmet: unmet.map((part) => inWords(cedar, part)),
        ...(typeof whole === 'string' ? { error: whole } : {}),
      },
    ];
  });
}

/** A policy for each condition alone. */
function partsOf({ conditions, ...policy }: PolicyJson): readonly PolicyJson[] {
  const scope = SCOPE.filter((part) => policy[part].op !== 'All').map((part): PolicyJson => ({
    effect: 'permit',
    ...ANY,
    conditions: [],
    [part]: policy[part],
  }));
  const clauses = conditions.flatMap(({ kind, body }): readonly Clause[] =>
    kind === 'unless' ? [{ kind, body }] : conjuncts(body).map((one) => ({ kind, body: one })),
  );
  return [
    ...scope,
    ...clauses.map((clause): PolicyJson => ({ effect: 'permit', ...ANY, conditions: [clause] })),
  ];
}

function conjuncts(expression: Expr): readonly Expr[] {
  if (!('&&' in expression)) return [expression];
  const { left, right } = expression['&&'] as { readonly left: Expr; readonly right: Expr };
  return [...conjuncts(left), ...conjuncts(right)];
}

/** The condition as Cedar writes it: of `permit(principal in A, action, resource);` what is between. */
function inWords(cedar: CedarEngine, part: PolicyJson): string {
  const answer = cedar.policyToText(part);
  const text = answer.type === 'success' ? answer.text : '';
  const [clause] = part.conditions;
  if (clause !== undefined) {
    const condition = text.slice(text.indexOf('{') + 1, text.lastIndexOf('}')).trim();
    return clause.kind === 'unless' ? `!(${condition})` : condition;
  }
  return text
    .replace(/^permit\(/u, '')
    .replace(/\);$/u, '')
    .replace(/^principal, action, /u, '')
    .replace(/^principal, /u, '')
    .replace(/, action, resource$/u, '')
    .replace(/, resource$/u, '');
}
