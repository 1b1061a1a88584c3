import { formatDuration } from '../time/duration.ts';
import type { Field, FieldValue } from './field.ts';

/** A value as people write it on the command line; lists and pairs comma-separated. */
export function showValue(field: Field, value: FieldValue): string {
  if (field.kind === 'duration' && typeof value === 'number') return formatDuration(value);
  if (typeof value !== 'object') return String(value);
  if (field.kind === 'json') return JSON.stringify(value);
  const items = Array.isArray(value)
    ? value
    : Object.entries(value).map(([key, item]) => `${key}=${String(item)}`);
  return items.join(',');
}

/** The default as documentation shows it; undefined when there is none. */
export function showDefault(field: Field): string | undefined {
  return field.defaultText ?? (field.default === undefined ? undefined : showValue(field, field.default));
}
