import { z } from 'zod';

/** A string schema whose complaint is what `fault` says about the value; undefined means it is fine. */
export function checkedText(fault: (value: string) => string | undefined) {
  return z.string().superRefine((value, context) => {
    const message = fault(value);
    if (message !== undefined) context.addIssue({ code: 'custom', message, input: value });
  });
}

/** The issues of a failed decode as one line: `packages[0].identifier: expected string, received undefined`. */
export function faultLine(error: z.ZodError, limit = 3): string {
  const lines = error.issues.slice(0, limit).map((issue) => {
    const at = issue.path.map(String).reduce((path, part) => {
      if (/^\d+$/.test(part)) return `${path}[${part}]`;
      return path === '' ? part : `${path}.${part}`;
    }, '');
    const message = issue.message.replace(/^Invalid input: /, '');
    return at === '' ? message : `${at}: ${message}`;
  });
  const more = error.issues.length - lines.length;
  return more > 0 ? `${lines.join('; ')}; and ${more} more` : lines.join('; ');
}
