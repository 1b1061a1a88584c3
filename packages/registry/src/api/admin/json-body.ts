import { jsonErrorPlace } from '@skep/core/json/judge.ts';
import { isDeeperThan, repeatedMember } from '@skep/core/json/scan.ts';
import type { SkepError } from '@skep/core/errors/skep-error.ts';
import { badRequest } from '../route/parameter.ts';

/** A body that is a JSON object, decoded, and its exact text for what must stay as it was written. */
export interface JsonBody {
  readonly value: Readonly<Record<string, unknown>>;
  readonly text: string;
}

// Programs that recurse over a document break on more; real documents have fewer than ten levels.
const DEEPEST = 64;

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Reads a request body. An object that names a member twice is refused, because what is checked here might not be what
 * another reader sees; so is half of a surrogate pair, which no store and no answer can hold as it was sent (RFC 7493
 * §2.1). Fails with `registry/bad-request`.
 */
export function readJsonBody(bytes: Buffer): JsonBody {
  const text = textOf(bytes);
  const value = parsed(text);
  if (!isObject(value)) throw invalidBody('expected an object');
  if (isDeeperThan(DEEPEST, text)) throw invalidBody('nested too deeply');
  if (hasLoneSurrogate(text)) throw invalidBody('it holds half of a surrogate pair');
  const repeated = repeatedMember(text);
  if (repeated !== undefined)
    throw invalidBody(`the member ${JSON.stringify(repeated.slice(0, 100))} occurs twice in one object`);
  return { value, text };
}

function textOf(bytes: Buffer): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw invalidBody('not UTF-8 text');
  }
}

function parsed(text: string): unknown {
  if (text.trim() === '') throw invalidBody('it is empty');
  try {
    return JSON.parse(text);
  } catch {
    const place = jsonErrorPlace(text);
    throw invalidBody(
      place === undefined ? 'not valid JSON' : `not valid JSON at line ${place.line}, column ${place.column}`,
    );
  }
}

/** Bytes that are UTF-8 hold none, so only escapes can. */
function hasLoneSurrogate(text: string): boolean {
  if (!/\\u[dD][89a-fA-F]/.test(text)) return false;
  let found = false;
  JSON.parse(text, (key, value: unknown) => {
    found ||= !key.isWellFormed() || (typeof value === 'string' && !value.isWellFormed());
    return value;
  });
  return found;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function invalidBody(detail: string): SkepError {
  return badRequest(`invalid request body: ${detail}`);
}
