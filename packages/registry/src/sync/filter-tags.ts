import { PUBLISHER_META } from '@skep/core/catalog/extension-summary.ts';
import type { ServerDocument } from '@skep/core/catalog/server-json.ts';

/**
 * The tags of a server: every `tags` list at `_meta[publisher-provided].<any namespace>.<any key>` (specification
 * §1.3.2). Lists of anything but text count for the texts in them.
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
