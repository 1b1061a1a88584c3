import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { findPath, rawAt } from '@skep/core/json/scan.ts';
import { wrapped } from './era.ts';
import { memberAt, type Request, type Response } from './json-rpc.ts';
import { readList } from './list-answer.ts';

/** An argument that is repeated in a header (`x-mcp-header`; MCP 2026-07-28, Streamable HTTP). */
interface Repeated {
  readonly path: readonly string[];
  readonly header: string;
}

const KEY = 'x-mcp-header';
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}$/u;
/** A number is none of the revision's, but there are servers that check it. */
const TYPES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean', 'number']);
const MAX_TOOLS = 10_000;
const MAX_HEADERS = 64;
const MAX_DEPTH = 16;

/** Which arguments of a server's tools are repeated in headers, as its lists say. */
export class RepeatedArguments {
  /** Those of a tool that has any. */
  readonly #tools = new Map<string, readonly Repeated[]>();

  /** A page of the list of tools has come. */
  learn(answer: Response): void {
    if (!answer.text.includes(KEY) && this.#tools.size === 0) return;
    for (const text of readList(answer, 'tools')?.items ?? []) {
      const tool = text.includes(KEY) || this.#tools.size > 0 ? parsedJson(text) : undefined;
      if (!isRecord(tool) || typeof tool['name'] !== 'string') continue;
      const found = repeatedIn(tool['inputSchema']);
      this.#tools.delete(tool['name']);
      if (found.length > 0 && this.#tools.size < MAX_TOOLS) this.#tools.set(tool['name'], found);
    }
  }

  /** The headers `Mcp-Param-…` of a call; none for an argument that is null, is not there, or that no header can hold. */
  headersFor({ value, text }: Request): Readonly<Record<string, string>> {
    const name = memberAt(value, ['params', 'name']);
    const repeated = typeof name === 'string' ? this.#tools.get(name) : undefined;
    if (repeated === undefined) return {};
    const span = findPath(text, ['params', 'arguments']);
    const given = span && parsedJson(rawAt(text, span));
    return Object.fromEntries(
      repeated.flatMap(({ path, header }) => {
        const said = asText(memberAt(given, path));
        return said === undefined ? [] : [[`Mcp-Param-${header}`, wrapped(said)]];
      }),
    );
  }
}

/** Those that a schema names on properties, and on properties of these. */
function repeatedIn(schema: unknown): readonly Repeated[] {
  const found: Repeated[] = [];
  const visit = (node: unknown, path: readonly string[]): void => {
    const properties = isRecord(node) ? node['properties'] : undefined;
    if (!isRecord(properties) || path.length >= MAX_DEPTH) return;
    for (const [name, property] of Object.entries(properties)) {
      const header = isRecord(property) && TYPES.has(property['type']) ? property[KEY] : undefined;
      if (typeof header === 'string' && TOKEN.test(header) && found.length < MAX_HEADERS)
        found.push({ path: [...path, name], header });
      visit(property, [...path, name]);
    }
  };
  visit(schema, []);
  return found;
}

function asText(value: unknown): string | undefined {
  if (typeof value === 'string') return value.isWellFormed() ? value : undefined;
  if (typeof value === 'boolean') return String(value);
  if (typeof value !== 'number') return undefined;
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? undefined : String(value);
}
