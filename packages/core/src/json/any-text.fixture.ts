import * as fc from 'fast-check';

const FIRST_SURROGATE = 0xd800;
const SURROGATES = 0x800;
const LAST = 0x10ffff;

/** Any one character. With its way back, so that fast-check also tries names that JavaScript itself uses (`__proto__`). */
export const anyCharacter = fc.integer({ min: 0, max: LAST - SURROGATES }).map(
  (at) => String.fromCodePoint(at < FIRST_SURROGATE ? at : at + SURROGATES),
  (text) => {
    const at = typeof text === 'string' ? (text.codePointAt(0) ?? 0) : 0;
    if (typeof text !== 'string' || text !== String.fromCodePoint(at)) throw new TypeError('one character');
    return at < FIRST_SURROGATE ? at : at - SURROGATES;
  },
);

/**
 * Any well-formed text. What fast-check has for it (`unit: 'binary'`) first computes for a second, which is half a minute
 * of a machine that is busy.
 */
export function anyText(
  constraints: { readonly minLength?: number; readonly maxLength?: number } = {},
): fc.Arbitrary<string> {
  return fc.string({ ...constraints, unit: anyCharacter });
}
