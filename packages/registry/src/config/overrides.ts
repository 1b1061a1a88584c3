import { z } from 'zod';
import { innerShape } from '../shape/draft.ts';
import { PREFIX, type Environment } from './environment.ts';
import type { ConfigPath } from '../shape/problem.ts';
import { configShape } from './shape.ts';

/** A member that holds one value, and how a text that stands for the value is read. */
interface ScalarMember {
  readonly path: ConfigPath;
  readonly kind: 'text' | 'number' | 'boolean';
}

/** The members of a shape that hold one value, lists and what is in them left out. */
export function scalarMembers(shape: unknown, path: ConfigPath = []): ScalarMember[] {
  const inner = innerShape(shape);
  if (inner instanceof z.ZodObject) {
    return Object.entries(inner.shape).flatMap(([name, member]) => scalarMembers(member, [...path, name]));
  }
  if (inner instanceof z.ZodNumber) return [{ path, kind: 'number' }];
  if (inner instanceof z.ZodBoolean) return [{ path, kind: 'boolean' }];
  return inner instanceof z.ZodString || inner instanceof z.ZodEnum ? [{ path, kind: 'text' }] : [];
}

/** The value that a text stands for; the text itself where it stands for none, which the shape then reports. */
function scalarValue(kind: ScalarMember['kind'], text: string): string | number | boolean {
  if (kind === 'number' && /^-?\d{1,15}(?:\.\d{1,15})?$/.test(text)) return Number(text);
  if (kind === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  return text;
}

/** A value from a flag or variable that takes the place of one in the file. */
export interface Override {
  readonly path: ConfigPath;
  readonly value: string | number | boolean;
  /** What to name in a message: `--auth-mode`, `SKEP_REGISTRY_STORAGE_PATH`. */
  readonly from: string;
}

/** Every member that holds one value: `auth.mode` is `SKEP_REGISTRY_AUTH_MODE`. */
const MEMBERS = scalarMembers(configShape).map((member) => ({ ...member, from: variableOf(member.path) }));

/** Variables that are read elsewhere: flags of `serve`, and the log. */
const OTHERS = [
  'ADDRESS',
  'INTERNAL_ADDRESS',
  'LOG_LEVEL',
  'INSECURE_URL',
  'COMPRESS_RESPONSE',
  'WATCH_NAMESPACE',
];

/** What the environment sets. Empty variables set nothing. */
export function overridesFrom(env: Environment): Override[] {
  return MEMBERS.flatMap(({ path, kind, from }) => {
    const text = env[from];
    return text === undefined || text === '' ? [] : [{ path, value: scalarValue(kind, text), from }];
  });
}

/**
 * Variables with our prefix that nothing reads. A warning and no error: an orchestrator that links a service called
 * skep-registry sets `SKEP_REGISTRY_PORT` and `SKEP_REGISTRY_SERVICE_…` by itself, which are not even worth that.
 */
export function unreadVariables(env: Environment): string[] {
  const read = new Set([...MEMBERS.map(({ from }) => from), ...OTHERS.map((name) => PREFIX + name)]);
  return Object.keys(env).filter(
    (name) =>
      name.startsWith(PREFIX) && !read.has(name) && !/^(PORT|SERVICE)(_|$)/.test(name.slice(PREFIX.length)),
  );
}

/**
 * The document with the overrides in place; of two for one member the first counts. A document that is no map is left to
 * the shape to report.
 */
export function override(document: unknown, overrides: readonly Override[]): unknown {
  return overrides.toReversed().reduce((value, { path, value: to }) => replaced(value, path, to), document);
}

function replaced(value: unknown, [step, ...rest]: ConfigPath, to: Override['value']): unknown {
  if (step === undefined) return to;
  if (value === undefined || value === null) return { [step]: replaced(undefined, rest, to) };
  if (typeof value !== 'object' || Array.isArray(value)) return value;
  return { ...value, [step]: replaced(Reflect.get(value, step), rest, to) };
}

function variableOf(path: ConfigPath): string {
  return PREFIX + path.map((step) => String(step).toUpperCase()).join('_');
}
