import { SkepError } from '@skep/core/errors/skep-error.ts';
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
  type Rule,
} from './rules.ts';

/** One instruction of classic BPF (linux/filter.h): jumps count instructions from the next one. */
export interface Instruction {
  readonly code: number;
  readonly whenTrue: number;
  readonly whenFalse: number;
  readonly value: number;
}

/** `BPF_LD|BPF_W|BPF_ABS`, `BPF_JMP|BPF_JEQ|BPF_K`, … of linux/bpf_common.h. */
export const LOAD = 0x20;
export const IF_EQUAL = 0x15;
export const IF_AT_LEAST = 0x35;
export const IF_ANY_BIT = 0x45;
export const RETURN = 0x06;

/** Where `struct seccomp_data` has them; both processors are little-endian, so the low half of an argument comes first. */
export const NUMBER_AT = 0;
export const ARCH_AT = 4;
export const argumentAt = (index: number): number => 16 + 8 * index;

function instruction(code: number, value: number, [whenTrue, whenFalse] = [0, 0]): Instruction {
  // A jump has one byte; what is left over would be another jump.
  if (Math.max(whenTrue, whenFalse) > 255)
    throw new SkepError('internal/bug', { message: 'a rule is too long' });
  return { code, whenTrue, whenFalse, value };
}
const load = (offset: number): Instruction => instruction(LOAD, offset);
const verdict = (value: number): Instruction => instruction(RETURN, value);

/**
 * The rules as a filter for seccomp(2). A call meets at most one rule, so each rule is a block that ends with an answer
 * and the next begins where the number did not match. Order matters only for speed, and the kernel remembers the numbers
 * that are always allowed.
 */
export function compileRules(
  architecture: Architecture,
  wanted: readonly Rule[] = RULES,
): readonly Instruction[] {
  const rules = wanted.flatMap((rule) => {
    const number = rule[architecture];
    return number === undefined ? [] : block(number, rule);
  });
  return [
    load(ARCH_AT),
    instruction(IF_EQUAL, AUDIT_ARCH[architecture], [1, 0]),
    verdict(KILL_PROCESS),
    load(NUMBER_AT),
    ...(architecture === 'x64' ? [instruction(IF_AT_LEAST, X32_BIT, [0, 1]), verdict(KILL_PROCESS)] : []),
    instruction(IF_AT_LEAST, LAST_KNOWN + 1, [0, 1]),
    verdict(NOT_IMPLEMENTED),
    ...rules,
    verdict(ALLOW),
  ];
}

function block(number: number, rule: Rule): readonly Instruction[] {
  const answer = [verdict(rule.verdict), verdict(ALLOW)];
  const body = (rule.when ?? []).reduceRight(
    (rest, one) => [...conditional(one, rest.length), ...rest],
    answer,
  );
  return [instruction(IF_EQUAL, number, [0, body.length]), ...body];
}

/** Goes on with what follows, of that length, when it is met, else with the last of it, which allows. */
function conditional(when: Condition, following: number): readonly Instruction[] {
  const argument = load(argumentAt(when.argument));
  const [met, unmet] = [0, following - 1];
  if ('hasAnyOf' in when) return [argument, instruction(IF_ANY_BIT, when.hasAnyOf, [met, unmet])];
  const values = 'isOneOf' in when ? when.isOneOf : when.isNoneOf;
  const [listed, other] = 'isOneOf' in when ? [met, unmet] : [unmet, met];
  const comparisons = values.map((value, at) => {
    const left = values.length - 1 - at;
    return instruction(IF_EQUAL, value, [left + listed, left === 0 ? other : 0]);
  });
  return [argument, ...comparisons];
}

/** The program as the kernel reads it: `struct sock_filter`, eight bytes each, on processors that are little-endian. */
export function encodeFilter(program: readonly Instruction[]): Uint8Array {
  const words = program.flatMap(({ code, whenTrue, whenFalse, value }) => [
    code | (whenTrue << 16) | (whenFalse << 24),
    value,
  ]);
  return new Uint8Array(Uint32Array.from(words).buffer);
}
