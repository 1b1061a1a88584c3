import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { innerShape } from './draft.ts';

/** Marks a member of a shape whose value a running server keeps until its next start. */
export const AT_START = { restart: true } as const;

/** Paths of the members that keep their value until the next start, as `limits.pageSize`. */
export function keptUntilRestart(shape: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (isKept(shape)) return [path];
  const inner = innerShape(shape);
  if (!(inner instanceof z.ZodObject)) return [];
  return Object.entries(inner.shape).flatMap(([name, member]) => keptUntilRestart(member, [...path, name]));
}

function isKept(shape: unknown): boolean {
  return shape instanceof z.ZodType && shape.meta()?.['restart'] === true;
}

/** Paths among these at which two documents differ, joined by dots. */
export function differingPaths(
  paths: readonly (readonly string[])[],
  [one, other]: readonly [unknown, unknown],
): string[] {
  return paths
    .filter((path) => !isDeepStrictEqual(valueAt(one, path), valueAt(other, path)))
    .map((path) => path.join('.'));
}

function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (at, name) => (typeof at === 'object' && at !== null ? Reflect.get(at, name) : undefined),
    value,
  );
}
