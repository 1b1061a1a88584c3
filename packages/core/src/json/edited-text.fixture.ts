import * as fc from 'fast-check';

/** What makes JSON another text, or none. */
const PIECES = [
  ...String.raw`" \ { } [ ] , : 0 - e .`.split(' '),
  ' ',
  '\n',
  '\u0000',
  '\u0001',
  '\ud800',
  '',
  '-1',
  '1e999',
  'true',
  'null',
  'u00e9',
  '"id":1,',
  '"method":"x",',
];

/** One of `texts` after up to `edits` edits anywhere, each of which drops a few characters and puts a piece in their place. */
export const edited = (texts: fc.Arbitrary<string>, edits: number): fc.Arbitrary<string> =>
  fc
    .tuple(
      texts,
      fc.array(fc.tuple(fc.nat(), fc.nat(6), fc.constantFrom(...PIECES)), { minLength: 1, maxLength: edits }),
    )
    .map(([text, changes]) => {
      for (const [at, drop, put] of changes) {
        const where = at % (text.length + 1);
        text = text.slice(0, where) + put + text.slice(where + drop);
      }
      return text;
    });
