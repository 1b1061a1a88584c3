import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  ARCH_AT,
  argumentAt,
  compileRules,
  encodeFilter,
  IF_ANY_BIT,
  IF_AT_LEAST,
  IF_EQUAL,
  LOAD,
  NUMBER_AT,
  RETURN,
  type Instruction,
} from './compile.ts';
import {
  ALLOW,
  AUDIT_ARCH,
  KILL_PROCESS,
  LAST_KNOWN,
  NOT_IMPLEMENTED,
  NOT_PERMITTED,
  RULES,
  UNCOUNTED_RULES,
  X32_BIT,
  type Architecture,
} from './rules.ts';
import { verdictOf, type SystemCall } from './verdict.fixture.ts';

const ARCHITECTURES: readonly Architecture[] = ['x64', 'arm64'];

/** What the kernel's own interpreter does with such a program. */
function interpret(program: readonly Instruction[], call: SystemCall): number {
  const memory = new Map([[NUMBER_AT, call.number], [ARCH_AT, call.arch]]); // prettier-ignore
  for (const [index, value] of call.arguments.entries()) memory.set(argumentAt(index), value);
  let accumulator = 0;
  for (let at = 0; at < program.length; at += 1) {
    const step = program[at];
    if (step === undefined) break;
    if (step.code === RETURN) return step.value;
    if (step.code === LOAD) {
      accumulator = memory.get(step.value) ?? 0;
      continue;
    }
    at += holds(step, accumulator) ? step.whenTrue : step.whenFalse;
  }
  throw new TypeError('the program does not end with an answer');
}

function holds({ code, value }: Instruction, accumulator: number): boolean {
  if (code === IF_EQUAL) return accumulator === value;
  if (code === IF_AT_LEAST) return accumulator >= value;
  if (code === IF_ANY_BIT) return (accumulator & value) !== 0;
  throw new TypeError(`no such instruction: ${code}`);
}

/** Numbers and arguments around everything that a rule names, and any others. */
const interesting = RULES.flatMap(({ when = [] }) => when).flatMap((one) => {
  if ('hasAnyOf' in one) return [one.hasAnyOf, 0x10000000, 0x40000000, 0x00010f00, 0o4755, 0o100, 0o644];
  return 'isOneOf' in one ? one.isOneOf : one.isNoneOf;
});
const value = fc.oneof(fc.constantFrom(...interesting), fc.integer({ min: 0, max: 0xffffffff }));
const calls = (architecture: Architecture) =>
  fc.record({
    arch: fc.oneof(
      { weight: 9, arbitrary: fc.constant(AUDIT_ARCH[architecture]) },
      fc.constantFrom(AUDIT_ARCH.x64, AUDIT_ARCH.arm64, 0x40000003, 0),
    ),
    number: fc.oneof(
      fc.constantFrom(...RULES.map((rule) => rule[architecture] ?? 0)),
      fc.integer({ min: 0, max: LAST_KNOWN + 5 }),
      fc.integer({ min: X32_BIT - 1, max: 0xffffffff }),
    ),
    arguments: fc.array(value, { minLength: 6, maxLength: 6 }),
  });

describe.each(ARCHITECTURES)('the filter of system calls on %s', (architecture) => {
  const program = compileRules(architecture);

  test('answers like the rules, for any call', () => {
    fc.assert(
      fc.property(calls(architecture), (call) => {
        expect(interpret(program, call)).toBe(verdictOf(architecture, call));
      }),
      { numRuns: 3000 },
    );
  });

  test('fits what the kernel accepts', () => {
    expect(program.length).toBeLessThan(4096);
    for (const { whenTrue, whenFalse } of program) expect(Math.max(whenTrue, whenFalse)).toBeLessThan(256);
    expect(encodeFilter(program)).toHaveLength(program.length * 8);
  });

  test('is none where a rule would be longer than a jump', () => {
    const isOneOf = Array.from({ length: 300 }, (_, value) => value);
    const long = { call: 'x', x64: 1, arm64: 1, when: [{ argument: 0, isOneOf }], verdict: KILL_PROCESS };
    expect(() => compileRules(architecture, [long])).toThrow('a rule is too long');
  });

  test('has one rule per call', () => {
    const numbers = RULES.flatMap((rule) => rule[architecture] ?? []);
    expect(new Set(numbers).size).toBe(numbers.length);
  });

  const ask = (name: string, ...given: readonly number[]) => {
    const number = RULES.find((rule) => rule.call === name)?.[architecture] ?? -1;
    return interpret(program, {
      arch: AUDIT_ARCH[architecture],
      number,
      arguments: [...given, 0, 0, 0, 0, 0, 0].slice(0, 6),
    });
  };

  test.each([
    'keyctl',
    'add_key',
    'request_key',
    'bpf',
    'io_uring_setup',
    'userfaultfd',
    'mount',
    'unshare',
    'ptrace',
  ])('refuses %s', (name) => expect(ask(name)).toBe(NOT_PERMITTED));

  test('lets threads and processes be made, but no namespace with them', () => {
    expect(ask('clone', 0x003d0f00)).toBe(ALLOW);
    expect(ask('clone', 0x10000011)).toBe(NOT_PERMITTED);
    expect(ask('clone3')).toBe(NOT_IMPLEMENTED);
  });

  test('lets files be made and their modes changed, but none that others run as the user', () => {
    const AT = 0xffffff9c;
    for (const mode of [0o4755, 0o2755, 0o6777]) {
      expect(ask('fchmod', 3, mode)).toBe(NOT_PERMITTED);
      expect(ask('fchmodat', AT, 0, mode)).toBe(NOT_PERMITTED);
      expect(ask('fchmodat2', AT, 0, mode)).toBe(NOT_PERMITTED);
      expect(ask('mknodat', AT, 0, mode)).toBe(NOT_PERMITTED);
      expect(ask('openat', AT, 0, 0o101, mode)).toBe(NOT_PERMITTED);
      expect(ask('openat', AT, 0, 0o20200002, mode)).toBe(NOT_PERMITTED);
      // Nothing is made, so there is no mode.
      expect(ask('openat', AT, 0, 0o2, mode)).toBe(ALLOW);
    }
    expect(ask('fchmodat', AT, 0, 0o1777)).toBe(ALLOW);
    expect(ask('openat', AT, 0, 0o101, 0o755)).toBe(ALLOW);
    expect(ask('openat2', AT)).toBe(NOT_IMPLEMENTED);
  });

  test('knows no memory of System V where nothing counts it, and does elsewhere', () => {
    const uncounted = compileRules(architecture, [...RULES, ...UNCOUNTED_RULES]);
    for (const rule of UNCOUNTED_RULES) {
      const call = {
        arch: AUDIT_ARCH[architecture],
        number: rule[architecture] ?? -1,
        arguments: [0, 4096, 0o600],
      };
      expect(interpret(uncounted, call)).toBe(NOT_IMPLEMENTED);
      expect(interpret(program, call)).toBe(ALLOW);
    }
  });

  test('refuses typing into a terminal, and no other request to a device', () => {
    expect(ask('ioctl', 0, 0x5412)).toBe(NOT_PERMITTED);
    expect(ask('ioctl', 0, 0x5413)).toBe(ALLOW);
  });

  test('knows the families of sockets that a server needs', () => {
    for (const family of [1, 2, 10, 16]) expect(ask('socket', family)).toBe(ALLOW);
    for (const family of [17, 38, 40, 44]) expect(ask('socket', family)).not.toBe(ALLOW);
  });

  test('ends a program that comes through another ABI', () => {
    const other = architecture === 'x64' ? 0x40000003 : AUDIT_ARCH.x64;
    expect(interpret(program, { arch: other, number: 1, arguments: [] })).toBe(KILL_PROCESS);
  });
});
