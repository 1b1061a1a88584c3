import type { Readable } from 'node:stream';
import { readLimited } from './read-limited.ts';

const MAX_BYTES = 16 * 1024;
const MAX_SHOWN = 300;
/** What comes later is not waited for: a server may never end its body. */
const PATIENCE_MS = 1_000;

/**
 * What the body of an error says in words: `error`, `detail` or `message` of a JSON document, and the first of its
 * `errors` (RFC 9457 documents, as the official registry answers); undefined when it says nothing in time. Hostile text:
 * clean it before it reaches a terminal. Never fails.
 */
export async function saidIn(body: Readable): Promise<string | undefined> {
  const timer = setTimeout(() => body.destroy(), PATIENCE_MS);
  try {
    const document: unknown = JSON.parse((await readLimited(body, MAX_BYTES)).toString('utf8'));
    const error = member(document, 'error');
    const said = [error, member(error, 'message'), member(document, 'detail'), member(document, 'message')];
    const errors = member(document, 'errors');
    const first: unknown = Array.isArray(errors) ? member(errors[0], 'message') : undefined;
    const words = [said.find(isText), first].filter(isText).join(': ');
    return words === '' ? undefined : words.slice(0, MAX_SHOWN);
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '';
}

function member(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Readonly<Record<string, unknown>>)[name];
}
