import { z } from 'zod';
import { SkepError } from '../errors/skep-error.ts';
import { decodeEntry, type ServerEntry } from './entry.ts';
import { compactText } from '../json/scan.ts';
import type { Skipped } from './registry-file.ts';

/** The text before, between and after the items of a list; `count` is the number of items on this page. */
export const listFrame = {
  open: '{"servers":[',
  separator: ',',
  close: (count: number, nextCursor?: string): string =>
    `],"metadata":${JSON.stringify(nextCursor === undefined ? { count } : { nextCursor, count })}}`,
} as const;

const item = z.looseObject({ server: z.looseObject({}), _meta: z.unknown().optional() });
const page = z.looseObject({
  servers: z.array(z.unknown()).nullish(),
  metadata: z.looseObject({ nextCursor: z.string().nullish(), next_cursor: z.string().nullish() }).nullish(),
});

/** A page as a client sees it: what could be read, what could not, and where to go on. */
export interface DecodedPage {
  readonly entries: readonly ServerEntry[];
  readonly skipped: readonly Skipped[];
  readonly nextCursor?: string;
}

/** What is wrong with an item, or the entry it holds. */
function decodeItem(value: unknown): ServerEntry | string {
  const decoded = item.safeParse(value);
  if (!decoded.success) return 'expected an object with "server"';
  const result = decodeEntry({
    kind: 'server',
    value: decoded.data.server,
    ...compactText(JSON.stringify(decoded.data.server)),
    outerMeta: decoded.data._meta,
  });
  if ('fault' in result) return result.fault;
  return result.entry.kind === 'server' ? result.entry : 'expected a server';
}

/**
 * Decodes the answer to `GET …/servers/{name}/versions/{version}`. `label` is the address, for messages.
 * Throws `catalog/bad-answer`.
 */
export function decodeServerItem(value: unknown, label: string): ServerEntry {
  const decoded = decodeItem(value);
  if (typeof decoded !== 'string') return decoded;
  throw new SkepError('catalog/bad-answer', { message: `"${label}" answered no server: ${decoded}` });
}

/**
 * Decodes one page of `GET …/servers`. Items that cannot be read are listed in `skipped`; both spellings of the cursor
 * that registries have used are understood. Throws `catalog/bad-answer` when it is no page at all.
 */
export function decodeServerPage(value: unknown, label: string): DecodedPage {
  const decoded = page.safeParse(value);
  if (!decoded.success) {
    throw new SkepError('catalog/bad-answer', { message: `"${label}" answered no list of servers` });
  }
  const entries: ServerEntry[] = [];
  const skipped: Skipped[] = [];
  for (const [index, candidate] of (decoded.data.servers ?? []).entries()) {
    const result = decodeItem(candidate);
    if (typeof result === 'string') skipped.push({ name: `servers[${index}]`, reason: result });
    else entries.push(result);
  }
  const nextCursor = decoded.data.metadata?.nextCursor ?? decoded.data.metadata?.next_cursor;
  return { entries, skipped, ...(nextCursor ? { nextCursor } : {}) };
}
