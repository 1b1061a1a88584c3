import { isRecord } from '@skep/core/json/is-record.ts';
import type { Relevant } from './cedar-values.ts';
import { HINTS } from './question.ts';

/**
 * Every attribute that policies name, on whatever (Cedar's JSON of policies). Cedar has no computed names, so a claim or an
 * argument whose attribute is not among them changes no decision; where the context is used as a whole, all may.
 */
export function relevantTo(policies: readonly unknown[]): Relevant {
  const names = new Set<string>();
  const uses = policies.map((policy) => {
    const conditions = isRecord(policy) ? policy['conditions'] : undefined;
    // Of a policy that is not read as expected, anything may count.
    if (!Array.isArray(conditions)) {
      for (const hint of HINTS) names.add(hint);
      return true;
    }
    return conditions.filter((clause) => !isRecord(clause) || usesWhole(clause['body'], names)).length > 0;
  });
  return { names, isAll: uses.includes(true) };
}

/** Collects the names in an expression; true where it uses the context other than for a member of it. */
function usesWhole(expression: unknown, names: Set<string>): boolean {
  if (!isRecord(expression)) return false;
  const found = Object.entries(expression).map(([operator, operand]) => {
    if (operator === 'Value') return false;
    if (operator === 'Var') return operand === 'context';
    if (operator === '.' || operator === 'has') return usesMember(operand, names);
    // The context may be compared with a record of the policy.
    if (operator === 'Record' && isRecord(operand)) for (const name of Object.keys(operand)) names.add(name);
    return someUsesWhole(operand, names);
  });
  return found.includes(true);
}

function usesMember(operand: unknown, names: Set<string>): boolean {
  if (!isRecord(operand)) return true;
  const { left, attr } = operand;
  // `has a.b` looks for `a` here, and for `b` there.
  for (const name of [attr].flat()) if (typeof name === 'string') names.add(name);
  return isRecord(left) && 'Var' in left ? false : usesWhole(left, names);
}

/** Operands are expressions, by name or in a list. */
function someUsesWhole(operand: unknown, names: Set<string>): boolean {
  const all: readonly unknown[] = isRecord(operand) ? Object.values(operand) : [operand].flat();
  return all.map((one) => usesWhole(one, names)).includes(true);
}
