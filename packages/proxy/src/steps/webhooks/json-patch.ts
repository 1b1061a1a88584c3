import { isDeepStrictEqual } from 'node:util';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parseLossless, serializeLossless } from '@skep/core/json/lossless.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';

/** Why a patch was not applied, as clients may hear it. */
export type PatchFault = 'malformed' | 'out-of-scope' | 'not-applicable';

export type Patched = { readonly text: string } | { readonly fault: PatchFault };

/** Where the message stands in the document that patches are about. */
const ROOT = 'mcp_request';
const OPERATIONS: ReadonlySet<unknown> = new Set(['add', 'remove', 'replace', 'move', 'copy', 'test']);
const MAX_OPERATIONS = 1_000;
/** Of all that is copied: each copy may double what there is. */
const MAX_COPIED_CHARACTERS = 1024 * 1024;

/** A number as it was written (core/json/lossless.ts); the TypeScript library does not declare it yet. */
function isRawJSON(value: unknown): boolean {
  return (JSON as unknown as { isRawJSON(value: unknown): boolean }).isRawJSON(value);
}

interface Operation {
  readonly op: string;
  readonly path: readonly string[];
  readonly from: readonly string[] | undefined;
  readonly value: unknown;
}

/**
 * Applies a JSON Patch (RFC 6902) to a JSON text; numbers that no operation touches keep their digits. Every path leads below
 * `/mcp_request/`, which is the text.
 */
export function patchText(text: string, patch: unknown): Patched {
  if (!Array.isArray(patch) || patch.length > MAX_OPERATIONS) return { fault: 'malformed' };
  try {
    const document = { [ROOT]: parseLossless(text, { maxBytes: Infinity }) };
    const copied = { characters: 0 };
    for (const operation of patch.map(read)) apply(document, operation, copied);
    return { text: serializeLossless(document[ROOT]) };
  } catch (error) {
    if (error instanceof PatchRefused) return { fault: error.fault };
    // Nested beyond what can be written.
    if (error instanceof RangeError) return { fault: 'not-applicable' };
    throw error;
  }
}

class PatchRefused extends SkepError {
  readonly fault: PatchFault;

  constructor(fault: PatchFault) {
    super('proxy/webhook-patch');
    this.fault = fault;
  }
}

function refuse(fault: PatchFault): never {
  throw new PatchRefused(fault);
}

function read(given: unknown): Operation {
  if (!isRecord(given)) return refuse('malformed');
  const { op, path, from, value } = given;
  if (typeof op !== 'string' || !OPERATIONS.has(op)) return refuse('malformed');
  const needsValue = op === 'add' || op === 'replace' || op === 'test';
  if (needsValue && !Object.hasOwn(given, 'value')) return refuse('malformed');
  const needsFrom = op === 'move' || op === 'copy';
  return { op, path: pointer(path), from: needsFrom ? pointer(from) : undefined, value };
}

/** RFC 6901. */
function pointer(text: unknown): readonly string[] {
  if (typeof text !== 'string' || (text !== '' && !text.startsWith('/')) || /~(?![01])/u.test(text))
    return refuse('malformed');
  const path = text
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
  return path.length > 1 && path[0] === ROOT ? path : refuse('out-of-scope');
}

function apply(
  document: object,
  { op, path, from = [], value }: Operation,
  copied: { characters: number },
): void {
  if (op === 'test') {
    if (!isSame(get(document, path), value)) refuse('not-applicable');
  } else if (op === 'add') add(document, path, value);
  else if (op === 'remove') remove(document, path);
  else if (op === 'replace') replace(document, path, value);
  else if (op === 'move') {
    const isInside = from.length < path.length && from.every((name, at) => path[at] === name);
    const moved = get(document, from);
    if (isInside) refuse('not-applicable');
    remove(document, from);
    add(document, path, moved);
  } else {
    const text = serializeLossless(get(document, from));
    copied.characters += text.length;
    if (copied.characters > MAX_COPIED_CHARACTERS) refuse('not-applicable');
    add(document, path, parseLossless(text, { maxBytes: Infinity }));
  }
}

/** What holds the last name of a path, and that name. */
function holder(document: object, path: readonly string[]): { readonly of: object; readonly name: string } {
  const above = get(document, path.slice(0, -1));
  if (typeof above !== 'object' || above === null || isRawJSON(above)) return refuse('not-applicable');
  return { of: above, name: path.at(-1) ?? '' };
}

function get(document: unknown, path: readonly string[]): unknown {
  let value = document;
  for (const name of path) {
    if (Array.isArray(value)) value = value[indexIn(name, value.length - 1)];
    else if (isRecord(value) && !isRawJSON(value) && Object.hasOwn(value, name)) value = value[name];
    else refuse('not-applicable');
  }
  return value;
}

function indexIn(name: string, last: number): number {
  const index = /^(?:0|[1-9]\d{0,8})$/u.test(name) ? Number(name) : -1;
  return index >= 0 && index <= last ? index : refuse('not-applicable');
}

function add(document: object, path: readonly string[], value: unknown): void {
  const { of, name } = holder(document, path);
  if (Array.isArray(of)) of.splice(name === '-' ? of.length : indexIn(name, of.length), 0, value);
  else put(of, name, value);
}

function remove(document: object, path: readonly string[]): void {
  get(document, path);
  const { of, name } = holder(document, path);
  if (Array.isArray(of)) of.splice(Number(name), 1);
  else Reflect.deleteProperty(of, name);
}

function replace(document: object, path: readonly string[], value: unknown): void {
  get(document, path);
  const { of, name } = holder(document, path);
  if (Array.isArray(of)) of[Number(name)] = value;
  else put(of, name, value);
}

/** Defined, not assigned, so that a name `__proto__` stays data. */
function put(of: object, name: string, value: unknown): void {
  Object.defineProperty(of, name, { value, writable: true, enumerable: true, configurable: true });
}

/** Numbers are the same where their values are (RFC 6902 §4.6). */
function isSame(a: unknown, b: unknown): boolean {
  return isDeepStrictEqual(JSON.parse(JSON.stringify(a)), JSON.parse(JSON.stringify(b)));
}
