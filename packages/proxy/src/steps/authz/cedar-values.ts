import { isRecord } from '@skep/core/json/is-record.ts';
import { parseJson } from '@skep/core/json/parsed-json.ts';
import { findMembers, folded, rawAt, repeatedMember } from '@skep/core/json/scan.ts';
import type { CedarValueJson } from './cedar-engine.ts';

/** Records within records; what is deeper is dropped. */
const MAX_LEVELS = 10;
/** Below the largest of Cedar's decimals: 64 bits, four of its digits behind the point. */
const MAX_DECIMAL = 922_337_203_685_477;
/** Cedar's JSON takes an object with one of them for something other than a record. */
const ESCAPES = new Set(['__entity', '__extn', '__expr']);

/**
 * JSON as Cedar has it: lists are sets, whole numbers are Long, others decimals of four places. Undefined for what Cedar
 * cannot have: null, text with half a surrogate pair, numbers out of range.
 */
export function cedarValue(value: unknown, level = 0): CedarValueJson | undefined {
  if (typeof value === 'boolean') return value;
  if (typeof value === 'string') return value.isWellFormed() ? value : undefined;
  if (typeof value === 'number') return cedarNumber(value);
  if (Array.isArray(value))
    return value.map((one) => cedarValue(one, level)).filter((one) => one !== undefined);
  if (!isRecord(value) || level >= MAX_LEVELS) return undefined;
  return recordOf(Object.entries(value).map(([name, one]) => [name, cedarValue(one, level + 1)]));
}

function cedarNumber(value: number): CedarValueJson | undefined {
  // Minus zero is no whole number to Cedar's reader.
  if (Number.isSafeInteger(value)) return value === 0 ? 0 : value;
  if (!(Math.abs(value) < MAX_DECIMAL)) return undefined;
  return { __extn: { fn: 'decimal', arg: value.toFixed(4) } };
}

export type CedarRecord = Readonly<Record<string, CedarValueJson>>;

/** A record of the values that there are, under names that Cedar takes for names. */
export function recordOf(
  entries: readonly (readonly [string, CedarValueJson | undefined])[],
): Record<string, CedarValueJson> {
  const kept = entries.filter(
    ([name, one]) => one !== undefined && !ESCAPES.has(name) && name.isWellFormed(),
  );
  return Object.fromEntries(kept) as Record<string, CedarValueJson>;
}

/** What policies see of claims and arguments. */
export interface Relevant {
  /** The attributes that they name. */
  readonly names: ReadonlySet<string>;
  /** One of them may see all the others, too. */
  readonly isAll: boolean;
}

export function isRelevant({ names, isAll }: Relevant, name: string): boolean {
  return isAll || names.has(name);
}

/**
 * `arg_<name>` of each argument that is text, a number or a boolean, and `arg_<name>_present` of any other. Undefined where
 * two readers might see different ones, for an argument occurs twice or in another case, and where Cedar cannot hold one: a
 * policy that forbids would miss it.
 */
export function argumentAttributes(args: string | undefined, relevant: Relevant): CedarRecord | undefined {
  const found = args === undefined ? [] : relevantArguments(args, relevant);
  const attributes = found
    ?.map(([name, value]): readonly [string, CedarValueJson | undefined] =>
      typeof value === 'object' ? [`arg_${name}_present`, true] : [`arg_${name}`, cedarValue(value)],
    )
    .filter(([name]) => isRelevant(relevant, name));
  if (attributes?.every(([name, value]) => value !== undefined && name.isWellFormed()) !== true)
    return undefined;
  return recordOf(attributes);
}

function relevantArguments(
  args: string,
  relevant: Relevant,
): readonly (readonly [string, unknown])[] | undefined {
  const wanted = new Set(
    [...relevant.names].flatMap((name) => {
      const argument = /^arg_(?<name>.*)$/su.exec(name)?.groups?.['name'];
      return argument === undefined ? [] : [argument, argument.replace(/_present$/u, '')];
    }),
  );
  if (wanted.size === 0 && !relevant.isAll) return [];
  const spans = findMembers(args, 0, wanted, 'exact');
  if (relevant.isAll) {
    if (spans === undefined || repeatedMember(args) !== undefined) return undefined;
    const value = parseJson(args);
    const entries = isRecord(value) ? Object.entries(value) : [];
    return new Set(entries.map(([name]) => folded(name))).size < entries.length ? undefined : entries;
  }
  return (
    spans &&
    Array.from(spans, ([name, span]) => {
      const raw = rawAt(args, span);
      return [name, /^[[{n]/u.test(raw) ? null : parseJson(raw)] as const;
    })
  );
}
