import { z } from 'zod';

/** What a shape says about a value that is written, without what makes it optional, fills it in or turns it into another. */
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
