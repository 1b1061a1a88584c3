import { LRUCache } from 'lru-cache';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { findPath, rawAt } from '@skep/core/json/scan.ts';
import { unwrapped, wrapped } from './era.ts';
import { memberAt, type Request, type Response } from './json-rpc.ts';
import { readList } from './list-answer.ts';

/** An argument that is repeated in a header (`x-mcp-header`; MCP 2026-07-28, Streamable HTTP). */
interface Repeated {
  readonly path: readonly string[];
  readonly header: string;
  /** Compared as numbers: `42` is `42.0`. */
  readonly isNumber: boolean;
}

const KEY = 'x-mcp-header';
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}$/u;
/** A number is none of the revision's, but there are servers that check it. */
const TYPES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean', 'number']);
const DECIMAL = /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/iu;
const MAX_TOOLS = 10_000;
const MAX_HEADERS = 64;
/** Longer names of tools, and ways to arguments, are not heeded. */
const MAX_NAME_CHARACTERS = 1_024;
/** Of all names and ways that are remembered. */
const MAX_CHARACTERS = 8 * 1024 * 1024;
const MAX_DEPTH = 16;

/** Which arguments of a server's tools are repeated in headers, as its lists say. */
export class RepeatedArguments {
  /** Those of a tool that has any: of those that were listed or called last. */
  readonly #tools = new LRUCache<string, readonly Repeated[]>({
    max: MAX_TOOLS,
    maxSize: MAX_CHARACTERS,
    sizeCalculation: (found, name) =>
      name.length + lengthOf(found.flatMap(({ path, header }) => [...path, header])),
  });

  /** A page of the list of tools has come. */
  learn(answer: Response): void {
    if (!answer.text.includes(KEY) && this.#tools.size === 0) return;
    for (const text of readList(answer, 'tools')?.items ?? []) {
      const tool = text.includes(KEY) || this.#tools.size > 0 ? parsedJson(text) : undefined;
      if (!isRecord(tool) || typeof tool['name'] !== 'string') continue;
      const found = repeatedIn(tool['inputSchema']);
      this.#tools.delete(tool['name']);
      if (found.length > 0 && tool['name'].length <= MAX_NAME_CHARACTERS)
        this.#tools.set(tool['name'], found);
    }
  }

  /** The headers `Mcp-Param-…` of a call; none for an argument that is null, is not there, or that no header can hold. */
  headersFor(request: Request): Readonly<Record<string, string>> {
    return Object.fromEntries(
      this.#saidIn(request).map(({ header, said }) => [`Mcp-Param-${header}`, wrapped(said)]),
    );
  }

  /** The header, in lower case, that a client has sent wrongly or not at all; undefined where all are as its call says. */
  mismatchIn(request: Request, sent: Readonly<Record<string, string>>): string | undefined {
    const wrong = this.#saidIn(request).find(({ header, said, isNumber }) => {
      const value = sent[nameOf(header)];
      const read = value === undefined ? undefined : unwrapped(value.trim());
      if (read === undefined) return true;
      return isNumber && DECIMAL.test(read) ? Number(read) !== Number(said) : read !== said;
    });
    return wrong && nameOf(wrong.header);
  }

  #saidIn({ value, text }: Request): readonly (Repeated & { readonly said: string })[] {
    const name = memberAt(value, ['params', 'name']);
    const repeated = typeof name === 'string' ? this.#tools.get(name) : undefined;
    if (repeated === undefined) return [];
    const span = findPath(text, ['params', 'arguments']);
    const given = span && parsedJson(rawAt(text, span));
    return repeated.flatMap((one) => {
      const said = asText(memberAt(given, one.path));
      return said === undefined ? [] : [{ ...one, said }];
    });
  }
}

function nameOf(header: string): string {
  return `mcp-param-${header.toLowerCase()}`;
}

/** Those that a schema names on properties, and on properties of these. */
function repeatedIn(schema: unknown): readonly Repeated[] {
  const found: Repeated[] = [];
  const visit = (node: unknown, path: readonly string[]): void => {
    const properties = isRecord(node) ? node['properties'] : undefined;
    if (!isRecord(properties) || path.length >= MAX_DEPTH) return;
    for (const [name, property] of Object.entries(properties)) {
      const header = isRecord(property) && TYPES.has(property['type']) ? property[KEY] : undefined;
      const way = [...path, name];
      if (lengthOf(way) > MAX_NAME_CHARACTERS) continue;
      if (typeof header === 'string' && TOKEN.test(header) && found.length < MAX_HEADERS)
        found.push({ path: way, header, isNumber: isNumeric(property) });
      visit(property, way);
    }
  };
  visit(schema, []);
  return found;
}

function lengthOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length, 1);
}

function isNumeric(property: unknown): boolean {
  return isRecord(property) && (property['type'] === 'integer' || property['type'] === 'number');
}

function asText(value: unknown): string | undefined {
  if (typeof value === 'string') return value.isWellFormed() ? value : undefined;
  if (typeof value === 'boolean') return String(value);
  if (typeof value !== 'number') return undefined;
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? undefined : String(value);
}
