import type { Entry } from '@skep/core/catalog/entry.ts';
import { PUBLISHER_META } from '@skep/core/catalog/extension-summary.ts';
import type { ServerDocument } from '@skep/core/catalog/server-json.ts';
import type { FilterConfig } from './filter-shape.ts';
import { compileGlob } from './glob.ts';

export type EntryFilter = (entry: Entry) => boolean;

/**
 * Compiles a filter once; the result tells whether an entry is kept, which takes both the name and the tag rule. Fails
 * with `config/invalid` for a pattern that is none.
 */
export function compileFilter({ names, tags }: FilterConfig): EntryFilter {
  const nameRule = compileRule(names, (pattern) => compileGlob(pattern));
  const tagRule = compileRule(tags, (tag) => (own: ReadonlySet<string>) => own.has(tag));
  return (entry) => {
    if (entry.kind !== 'server') return nameRule(`${entry.namespace}/${entry.name}`);
    return nameRule(entry.name) && tagRule(tagsOf(entry.document));
  };
}

/**
 * A text that is equal for filters that keep the same entries because they say the same in another order. It belongs
 * into the hash that decides whether a source is read again, so that an edited filter takes effect at once.
 */
export function filterKey({ names, tags }: FilterConfig): string {
  const sorted = (list: readonly string[] = []): readonly string[] => [...new Set(list)].toSorted();
  return JSON.stringify([names, tags].map((rule) => [sorted(rule?.include), sorted(rule?.exclude)]));
}

function compileRule<T>(rule: FilterConfig['tags'] = {}, compile: (text: string) => (value: T) => boolean) {
  const include = (rule.include ?? []).map(compile);
  const exclude = (rule.exclude ?? []).map(compile);
  return (value: T): boolean =>
    !exclude.some((matches) => matches(value)) &&
    (include.length === 0 || include.some((matches) => matches(value)));
}

/**
 * The tags of a server: every `tags` list at `_meta[publisher-provided].<any namespace>.<any key>`
 * (docs/behaviour/registry.md#filters). Lists of anything but text count for the texts in them.
 */
export function tagsOf(document: ServerDocument): ReadonlySet<string> {
  const blocks = members(document._meta?.[PUBLISHER_META]).flatMap(members);
  return new Set(blocks.flatMap(tagsOfBlock));
}

function tagsOfBlock(block: unknown): readonly string[] {
  const tags: unknown =
    typeof block === 'object' && block !== null && Object.hasOwn(block, 'tags')
      ? Reflect.get(block, 'tags')
      : undefined;
  return Array.isArray(tags) ? tags.filter((tag) => typeof tag === 'string') : [];
}

function members(value: unknown): readonly unknown[] {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.values(value) : [];
}
