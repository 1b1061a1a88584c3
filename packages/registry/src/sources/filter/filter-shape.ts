import { z } from 'zod';
import { faultOf, unless } from '../../shape/problem.ts';
import { nonEmpty } from '../../shape/texts.ts';
import { compileGlob } from './glob.ts';

const pattern = z.string().superRefine(unless((value) => faultOf(() => compileGlob(value))));

/** What to take and what to leave out; exclusion wins, and an empty or absent `include` takes everything. */
const rule = <Item extends z.ZodType>(item: Item) =>
  z.strictObject({ include: z.array(item).optional(), exclude: z.array(item).optional() });

/** A source's `filter`: names of servers, and `<namespace>/<name>` of skills and plugins, which have no tags. */
export const filterShape = z.strictObject({
  names: rule(pattern).optional().describe('patterns with `*`, `?`, `[…]` and `{a,b}`; `*` also matches `/`'),
  tags: rule(nonEmpty).optional().describe('exact tags of the publisher'),
});

/** Plain data, so that it may travel to another thread. */
export type FilterConfig = z.infer<typeof filterShape>;

/** Each entry is compared with all of them. */
const MAX_PATTERNS = 1_000;
const MAX_PATTERN_CHARACTERS = 65_536;

/** What is stored already stays as it is, so this is not said of its shape. */
export const filterSize = unless(({ names, tags }: FilterConfig) => {
  const all = [names, tags].flatMap((one) => [...(one?.include ?? []), ...(one?.exclude ?? [])]);
  if (all.length > MAX_PATTERNS)
    return `must not have more than ${MAX_PATTERNS} patterns and tags (has ${all.length})`;
  const length = all.reduce((sum, text) => sum + text.length, 0);
  return length > MAX_PATTERN_CHARACTERS
    ? `must not have more than ${MAX_PATTERN_CHARACTERS} characters in all its patterns and tags together (has ${length})`
    : undefined;
});
