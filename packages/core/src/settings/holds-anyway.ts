import { SkepError } from '../errors/skep-error.ts';
import type { Field, FieldValue } from './field.ts';

/**
 * The value of a row whose behaviour comes with a later release, when it is what happens anyway: its default, "no", or
 * nothing. People bring such flags along from other tools. Any other value, one that cannot be read too, fails with
 * `refusal`.
 */
export function holdsAnyway(field: Field, read: () => FieldValue, refusal: SkepError): FieldValue {
  const value = readOr(read, refusal);
  if (value === field.default || value === false || value === '') return value;
  if (typeof value === 'object' && Object.keys(value).length === 0) return value;
  throw refusal;
}

function readOr(read: () => FieldValue, refusal: SkepError): FieldValue {
  try {
    return read();
  } catch (error) {
    if (error instanceof SkepError) throw refusal;
    throw error;
  }
}
