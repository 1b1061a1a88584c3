import { z } from 'zod';

/** A value as far as it can be read: every member may be missing, and texts are any texts. */
export type Draft<T> = T extends string
  ? string
  : T extends readonly (infer Item)[]
    ? readonly (Draft<Item> | undefined)[]
    : T extends object
      ? { readonly [Key in keyof T]?: Draft<T[Key]> | undefined }
      : T;

/**
 * The part of a value that has the types of a shape, for rules between members; the shape has reported everything else.
 * A member of a wrong type stays as undefined, and members that the shape does not know stay as they are.
 */
export function draftOf<Shape extends z.ZodType>(
  shape: Shape,
  value: unknown,
): Draft<z.input<Shape>> | undefined;
export function draftOf(shape: z.ZodType, value: unknown): unknown {
  const inner = innerShape(shape);
  if (inner instanceof z.ZodObject) return isMap(value) ? draftMembers(inner.shape, value) : undefined;
  if (inner instanceof z.ZodArray) {
    return Array.isArray(value) ? value.map((item) => draftMember(inner.element, item)) : undefined;
  }
  const type =
    inner instanceof z.ZodString ? 'string' : inner instanceof z.ZodBoolean ? 'boolean' : undefined;
  return type === undefined || typeof value === type ? value : undefined;
}

function draftMembers(shapes: Readonly<Record<string, unknown>>, value: object): object {
  const members = Object.entries(value).map(([key, member]: [string, unknown]) => [
    key,
    Object.hasOwn(shapes, key) ? draftMember(shapes[key], member) : member,
  ]);
  return Object.fromEntries(members);
}

function draftMember(shape: unknown, value: unknown): unknown {
  return shape instanceof z.ZodType ? draftOf(shape, value) : undefined;
}

function isMap(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The shape of a value as it is written, without what makes it optional, fills it in or turns it into another. */
export function innerShape(shape: unknown): unknown {
  const wraps =
    shape instanceof z.ZodOptional ||
    shape instanceof z.ZodNullable ||
    shape instanceof z.ZodDefault ||
    shape instanceof z.ZodPrefault ||
    shape instanceof z.ZodReadonly;
  if (wraps) return innerShape(shape.unwrap());
  return shape instanceof z.ZodPipe ? innerShape(shape.in) : shape;
}
