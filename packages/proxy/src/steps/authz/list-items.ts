import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { findMembers, rawAt } from '@skep/core/json/scan.ts';
import type { ListShape } from './methods.ts';
import { HINTS, type Hints } from './question.ts';

/** One of a list that a server gave. */
export interface Item {
  readonly kind: ListShape['kind'];
  readonly id: string;
  /** Of a tool that has annotations. */
  readonly hints?: Hints;
}

/** The items whose raw texts these are; undefined where one of them has no name, or two. */
export function itemsOf(texts: readonly string[], list: ListShape): readonly Item[] | undefined {
  const items = texts.flatMap((text) => itemOf(text, list) ?? []);
  return items.length === texts.length ? items : undefined;
}

/** The item whose raw text this is; undefined for one that has no name, or two. */
export function itemOf(text: string, { name, kind }: ListShape): Item | undefined {
  const members = findMembers(text, 0, new Set([name, 'annotations']));
  const span = members?.get(name);
  const id = span && parsedJson(rawAt(text, span));
  if (typeof id !== 'string') return undefined;
  const annotations = kind === 'tool' ? members?.get('annotations') : undefined;
  if (annotations === undefined) return { kind, id };
  const said = parsedJson(rawAt(text, annotations));
  const known = HINTS.flatMap((hint) => {
    const value = isRecord(said) ? said[hint] : undefined;
    return typeof value === 'boolean' ? [[hint, value] as const] : [];
  });
  return { kind, id, hints: Object.fromEntries(known) };
}
