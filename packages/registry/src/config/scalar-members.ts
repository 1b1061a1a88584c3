import { z } from 'zod';
import { innerShape } from '../shape/draft.ts';
import type { ConfigPath } from '../shape/problem.ts';

/** A member that holds one value, and how a text that stands for the value is read. */
export interface ScalarMember {
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
export function scalarValue(kind: ScalarMember['kind'], text: string): string | number | boolean {
  if (kind === 'number' && /^-?\d{1,15}(?:\.\d{1,15})?$/.test(text)) return Number(text);
  if (kind === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  return text;
}
