import { createHash } from 'node:crypto';
import { tokensOfTool } from '@skep/core/catalog/tool-weight.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { judge } from '@skep/core/json/judge.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { memberAt } from '@skep/proxy/message/json-rpc.ts';
import type { FoundTool } from './found-server.ts';

/** Of one listing, whatever the server answers. */
const MAX_PAGES = 100;
/** What is read of it, all other workloads wait for. */
export const MAX_LISTING_CHARS = 2 * 1024 * 1024;
const MAX_TOOLS = 1_000;
/** MCP allows 128; what is longer is a tool all the same, and its digest tells it from others. */
const MAX_NAME_CHARS = 200;
const MAX_CURSOR_CHARS = 64 * 1024;
const LISTING_MS = 10_000;

/** Sends one request to the server; resolves with the text of its answer, an error too. */
export type AskServer = (
  method: string,
  params: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
) => Promise<string>;

/** The tools of a server. */
export interface Listing {
  readonly tools: readonly FoundTool[];
  /** False where the server has more, or may have, than was read. */
  readonly complete: boolean;
}

/**
 * Asks for all tools, page by page, within bounds of pages, characters, tools and time. A server may answer anything:
 * what is no tool is left out, and what no listing can be made of ends it. Rejects only when the signal aborts.
 */
export async function listTools(
  ask: AskServer,
  signal: AbortSignal,
  withinMs = LISTING_MS,
): Promise<Listing> {
  const tools = new Map<string, FoundTool>();
  const inTime = AbortSignal.any([signal, AbortSignal.timeout(withinMs)]);
  let cursor: string | undefined;
  let room = MAX_LISTING_CHARS;
  for (let page = 0; page < MAX_PAGES && room > 0; page += 1) {
    const answer = await answerTo(ask, cursor, inTime).catch(() => undefined);
    signal.throwIfAborted();
    room -= answer?.length ?? room;
    const result = answer === undefined || room < 0 ? undefined : resultIn(answer);
    const listed: unknown = result?.['tools'];
    if (!Array.isArray(listed)) break;
    for (const tool of listed.filter(isTool)) {
      if (tools.size === MAX_TOOLS && !tools.has(tool.name))
        return { tools: [...tools.values()], complete: false };
      tools.set(tool.name, foundTool(tool));
    }
    const next = result?.['nextCursor'];
    if (next === undefined || next === null || next === '')
      return { tools: [...tools.values()], complete: true };
    if (typeof next !== 'string' || next === cursor || next.length > MAX_CURSOR_CHARS) break;
    cursor = next;
  }
  return { tools: [...tools.values()], complete: false };
}

/** Rejects when the time is up, whatever the one who asks does. */
function answerTo(ask: AskServer, cursor: string | undefined, signal: AbortSignal): Promise<string> {
  const { promise, reject } = Promise.withResolvers<never>();
  const end = (): void => reject(signal.reason as Error);
  signal.addEventListener('abort', end, { once: true });
  const asked = ask('tools/list', cursor === undefined ? {} : { cursor }, signal);
  return Promise.race([asked, promise]).finally(() => signal.removeEventListener('abort', end));
}

/** Nothing is made of what is nested beyond reason. */
function resultIn(answer: string): Readonly<Record<string, unknown>> | undefined {
  const result = judge(answer) === 'json' ? memberAt(parsedJson(answer), ['result']) : undefined;
  return isRecord(result) ? result : undefined;
}

type Tool = Readonly<Record<string, unknown>> & { readonly name: string };

function isTool(value: unknown): value is Tool {
  return isRecord(value) && typeof value['name'] === 'string';
}

function foundTool(tool: Tool): FoundTool {
  const digest = createHash('sha256').update(canonicalJson(tool)).digest('hex');
  return { name: tool.name.slice(0, MAX_NAME_CHARS), digest, tokens: tokensOfTool(tool) };
}

/** The same text for the same value, in whatever order a server writes members. */
function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (!isRecord(value)) return JSON.stringify(value);
  const members = Object.keys(value).toSorted();
  return `{${members.map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key])}`).join(',')}}`;
}
