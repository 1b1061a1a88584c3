import { didYouMean } from '@skep/core/settings/did-you-mean.ts';
import { z } from 'zod';
import { innerShape } from './draft.ts';
import type { ConfigPath, Problem } from './problem.ts';

type Issue = z.core.$ZodIssue;

/** Checks a value against a strict shape: the typed value, or everything that is wrong with it. */
export function checkShape<Shape extends z.ZodType>(
  shape: Shape,
  value: unknown,
): { readonly data: z.infer<Shape> } | { readonly problems: readonly Problem[] } {
  const result = shape.safeParse(value, { reportInput: true });
  if (result.success) return { data: result.data };
  return { problems: result.error.issues.flatMap((issue) => problemsOf(shape, issue)) };
}

function problemsOf(shape: z.ZodType, issue: Issue): Problem[] {
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => unknownKey(shape, issue.path, key));
  return [{ path: issue.path, message: messageOf(issue) }];
}

function messageOf(issue: Issue): string {
  if (issue.code === 'invalid_type') {
    const isSecret = /password|secret/i.test(String(issue.path.at(-1)));
    const message = typeMessage(issue.expected, issue.input);
    return isSecret ? message.replace(/, not .*/s, '') : message;
  }
  if (issue.code === 'invalid_format') return `${issue.message}, not ${quoted(issue.input)}`;
  if (issue.code !== 'invalid_value') return issue.message;
  const choices = issue.values.filter((choice) => choice !== '').map((choice) => `"${String(choice)}"`);
  return `must be ${choices.join(' or ')}, not ${quoted(issue.input)}`;
}

function unknownKey(shape: z.ZodType, path: ConfigPath, key: string): Problem {
  const near = didYouMean(key, membersAt(shape, path));
  const hint = near === undefined ? '' : `; did you mean "${near}"?`;
  return { path: [...path, key], at: 'key', message: `unknown key "${key}"${hint}` };
}

function typeMessage(expected: string, input: unknown): string {
  const wanted = WORDS[expected] ?? expected;
  if (input === undefined) return `is required (${wanted})`;
  const cure = expected === 'string' && typeof input === 'number' ? '; write it in quotes' : '';
  return `must be ${wanted}, not ${described(input)}${cure}`;
}

const WORDS: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a map of members',
  record: 'a map of members',
};

function described(input: unknown): string {
  if (input === null) return 'empty';
  if (Array.isArray(input)) return 'a list';
  return typeof input === 'object' ? 'a map of members' : quoted(input);
}

function quoted(input: unknown): string {
  return typeof input === 'string' ? `"${input.slice(0, 200)}"` : String(input);
}

/** Names of the members that the shape allows at a path. */
function membersAt(shape: z.ZodType, path: ConfigPath): string[] {
  let at = innerShape(shape);
  for (const step of path) {
    if (at instanceof z.ZodArray) at = innerShape(at.element);
    else if (at instanceof z.ZodObject) at = innerShape(at.shape[String(step)]);
    else return [];
  }
  return at instanceof z.ZodObject ? Object.keys(at.shape) : [];
}
