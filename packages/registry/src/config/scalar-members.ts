import { z } from 'zod';
import type { ConfigPath } from '../shape/problem.ts';

/** A member that holds one value, and how a text that stands for the value is read. */
export interface ScalarMember {
  readonly path: ConfigPath;
  readonly kind: 'text' | 'number' | 'boolean';
}

/** The members of a shape that hold one value, lists and what is in them left out. */
export function scalarMembers(shape: z.ZodType, path: ConfigPath = []): ScalarMember[] {
  if (shape instanceof z.ZodOptional || shape instanceof z.ZodNullable) {
    const inner: unknown = shape.unwrap();
    return inner instanceof z.ZodType ? scalarMembers(inner, path) : [];
  }
  if (shape instanceof z.ZodObject) {
    return Object.entries(shape.shape).flatMap(([name, member]: [string, unknown]) =>
      member instanceof z.ZodType ? scalarMembers(member, [...path, name]) : [],
    );
  }
  if (shape instanceof z.ZodNumber) return [{ path, kind: 'number' }];
  if (shape instanceof z.ZodBoolean) return [{ path, kind: 'boolean' }];
  return shape instanceof z.ZodString || shape instanceof z.ZodEnum ? [{ path, kind: 'text' }] : [];
}

/** The value that a text stands for; the text itself where it stands for none, which the shape then reports. */
export function scalarValue(kind: ScalarMember['kind'], text: string): string | number | boolean {
  if (kind === 'number' && /^-?\d{1,15}(?:\.\d{1,15})?$/.test(text)) return Number(text);
  if (kind === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  return text;
}
