import { findElements, findMembers, findPath, rawAt, splice } from '@skep/core/json/scan.ts';
import { readMessage, type Message, type Response } from './json-rpc.ts';

/** The answer to a request for a list. */
export interface ListAnswer {
  /** Raw JSON text of each item. */
  readonly items: readonly string[];
  /** The answer with those items alone that `keeps` holds for, for this caller only; every other character stays. */
  with(keeps: readonly boolean[]): Message | undefined;
}

/** More are not looked at. */
const MAX_ITEMS = 10_000;

/** The items of `result[member]`; undefined where there is no such list, or two readers might see different ones. */
export function readList(answer: Response, member: string): ListAnswer | undefined {
  const { text } = answer;
  const result = findPath(text, ['result']);
  const members = result && findMembers(text, result.start, new Set([member, 'cacheScope']));
  const span = members?.get(member);
  const list = span && rawAt(text, span);
  if (members === undefined || span === undefined || !list?.startsWith('[')) return undefined;
  const items = findElements(list, MAX_ITEMS + 1).map((item) => rawAt(list, item));
  if (items.length > MAX_ITEMS) return undefined;
  const scope = members.get('cacheScope');
  return {
    items,
    with(keeps) {
      if (scope === undefined && items.every((_, index) => keeps[index])) return answer;
      const kept = items.filter((_, index) => keeps[index] === true);
      const edits = [
        { span, text: `[${kept.join(',')}]` },
        // Shared caches (MCP 2026-07-28) would show it to others.
        ...(scope === undefined ? [] : [{ span: scope, text: '"private"' }]),
      ];
      const message = readMessage(splice(text, edits));
      return typeof message === 'string' ? undefined : message;
    },
  };
}
