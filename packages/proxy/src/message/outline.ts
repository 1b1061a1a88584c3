import { parseJson } from '@skep/core/json/parsed-json.ts';
import { findMembers, rawAt, type Span } from '@skep/core/json/scan.ts';

/** Texts of so many characters and more are not parsed whole. */
export const OUTLINED_FROM = 64 * 1024;

/** What the proxy looks at in a message, on whatever level it stands. */
const ACTED_ON = new Set([
  'jsonrpc',
  'id',
  'method',
  'params',
  'result',
  'error',
  'isError',
  '_meta',
  'io.modelcontextprotocol/protocolVersion',
  'io.modelcontextprotocol/clientCapabilities',
  'io.modelcontextprotocol/clientInfo',
  'io.modelcontextprotocol/logLevel',
  'io.modelcontextprotocol/subscriptionId',
  'resultType',
  'requestState',
  'supportedVersions',
  'inputResponses',
  'notifications',
  'code',
  'progressToken',
  'requestId',
  'protocolVersion',
  'capabilities',
  'serverInfo',
  'tools',
  'toolChoice',
  'mode',
  'name',
  'uri',
  'level',
  'task',
  'taskId',
  'elicitationId',
]);
/** `params._meta.x` and `result.task.x` lie on the third. */
const LEVELS = 3;

/**
 * The members of a large message that the proxy acts upon, those that are small themselves; null for one that is not.
 * Undefined where one of them occurs twice, or where the text is no object. Expects text that `judge` accepted.
 */
export function outline(text: string): unknown {
  return within(text, { start: 0, end: text.length }, LEVELS);
}

function within(text: string, span: Span, levels: number): unknown {
  const members = findMembers(text, span.start, ACTED_ON);
  if (members === undefined || (members.size === 0 && levels === LEVELS)) return undefined;
  const found: Record<string, unknown> = {};
  for (const [name, at] of members) {
    const value = at.end - at.start < OUTLINED_FROM ? parseJson(rawAt(text, at)) : large(text, at, levels);
    if (value === undefined) return undefined;
    found[name] = value;
  }
  return found;
}

function large(text: string, span: Span, levels: number): unknown {
  return text[span.start] === '{' && levels > 0 ? within(text, span, levels - 1) : null;
}
