import {
  ALLOW,
  AUDIT_ARCH,
  KILL_PROCESS,
  LAST_KNOWN,
  NOT_IMPLEMENTED,
  RULES,
  X32_BIT,
  type Architecture,
  type Condition,
} from './rules.ts';

export interface SystemCall {
  /** `AUDIT_ARCH_*` of the ABI that was used. */
  readonly arch: number;
  readonly number: number;
  /** Low 32 bits of each. */
  readonly arguments: readonly number[];
}

/** What the rules say about one call of a program for this processor. The compiled filter says the same. */
export function verdictOf(architecture: Architecture, call: SystemCall): number {
  if (call.arch !== AUDIT_ARCH[architecture]) return KILL_PROCESS;
  if (architecture === 'x64' && call.number >= X32_BIT) return KILL_PROCESS;
  if (call.number > LAST_KNOWN) return NOT_IMPLEMENTED;
  const rule = RULES.find((one) => one[architecture] === call.number);
  return rule && (rule.when ?? []).every((one) => holds(one, call)) ? rule.verdict : ALLOW;
}

function holds(when: Condition, call: SystemCall): boolean {
  const value = call.arguments[when.argument] ?? 0;
  if ('hasAnyOf' in when) return (value & when.hasAnyOf) !== 0;
  if ('isOneOf' in when) return when.isOneOf.includes(value);
  return !when.isNoneOf.includes(value);
}
