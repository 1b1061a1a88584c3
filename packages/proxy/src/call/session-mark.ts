import { hash } from 'node:crypto';
import { MAX_ID_CHARACTERS } from '../message/json-rpc.ts';
import type { Call } from './call.ts';

/** How servers name the session in the address that their stream told. */
const QUERY_NAMES: ReadonlySet<string> = new Set(['session_id', 'sessionid']);
/** A piece of a path that nobody has typed: such servers put the session there too. */
const ID_IN_PATH = /(?<=\/)(?=[^/]*\d)[\w-]{20,}(?=\/|$)/gu;

/**
 * Tells the session that a call names from others, and is of no use to whoever reads it: where nobody signs in, the id itself
 * is all that it takes to speak as its client. Undefined where there is none.
 */
export function sessionMark({
  req,
  target,
  path,
}: Pick<Call, 'req' | 'target' | 'path'>): string | undefined {
  const id =
    req.headers['mcp-session-id'] ?? queryId(target.slice(path.length)) ?? path.match(ID_IN_PATH)?.at(-1);
  return typeof id === 'string' && id !== '' ? markOf(id) : undefined;
}

function queryId(query: string): string | undefined {
  for (const [name, value] of new URLSearchParams(query))
    if (QUERY_NAMES.has(name.toLowerCase())) return value;
  return undefined;
}

/** Sessions whose marks are remembered: one call of theirs comes after another, and each is marked more than once. */
const MAX_MARKS = 256;
const marks = new Map<string, string>();

function markOf(id: string): string {
  const known = marks.get(id);
  if (known !== undefined) return known;
  const mark = hash('sha256', id).slice(0, 16);
  if (id.length > MAX_ID_CHARACTERS) return mark;
  if (marks.size >= MAX_MARKS) marks.clear();
  marks.set(id, mark);
  return mark;
}

/** A path as it may be written down: marks stand for the ids of sessions in it. */
export function pathWithMarks(path: string): string {
  return path.replace(ID_IN_PATH, markOf);
}
