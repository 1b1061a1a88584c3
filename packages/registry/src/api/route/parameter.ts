import { SkepError } from '@skep/core/errors/skep-error.ts';
import { DEFAULT_LIMITS, type Limits } from '../../shape/limits.ts';

/** A path or query parameter: how it is documented and how its text becomes a value. */
export interface Parameter<T> {
  readonly description: string;
  /** JSON Schema of the value as a client writes it. */
  readonly schema: JsonSchema | ((limits: Limits) => JsonSchema);
  /** `text` is percent-decoded; undefined when absent. Fails with `registry/bad-request`. */
  parse(text: string | undefined, limits: Limits): T;
}

type JsonSchema = Readonly<Record<string, unknown>>;

/** JSON Schema of what is not empty and holds no white space or control character. */
export const WORD = { type: 'string', pattern: String.raw`^[^\s\u0000-\u001f\u007f-\u009f]+$` } as const;

export type Parameters = Readonly<Record<string, Parameter<unknown>>>;

/** The values of a set of parameters. */
export type Parsed<P extends Parameters> = { readonly [Name in keyof P]: ReturnType<P[Name]['parse']> };

/** Parameter texts as they arrive; a repeated query parameter is a list. */
export type RawParameters = Readonly<Record<string, string | readonly string[] | undefined>>;

export function badRequest(message: string): SkepError {
  return new SkepError('registry/bad-request', { message });
}

/** Parses in the order of declaration, so that the first bad parameter is the one that is named. */
export function parseParameters<P extends Parameters>(
  parameters: P,
  raw: RawParameters,
  limits: Limits = DEFAULT_LIMITS,
): Parsed<P> {
  const values = Object.entries(parameters).map(([name, parameter]) => {
    const text = Object.hasOwn(raw, name) ? raw[name] : undefined;
    if (typeof text === 'object') throw badRequest(`Invalid ${name} parameter: must be given once`);
    return [name, parameter.parse(text, limits)];
  });
  return Object.fromEntries(values) as Parsed<P>;
}
