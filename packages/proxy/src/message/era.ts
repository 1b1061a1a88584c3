import { isUtf8 } from 'node:buffer';
import { isRecord } from '@skep/core/json/is-record.ts';
import type { IncomingHttpHeaders } from 'node:http';
import type { Code } from '@skep/core/errors/codes.ts';
import { META, REQUEST_META } from './envelope.ts';
import { member, memberAt, type JsonObject, type Message } from './json-rpc.ts';
import { NAMED_PARAMETER, REMOVED } from './methods.ts';
import { MODERN_VERSION } from './protocol-version.ts';

export interface Rejection {
  readonly era: 'rejected';
  readonly code: Code;
  readonly data: JsonObject | undefined;
}

/** `legacy` has sessions and initialize, `modern` is stateless; a rejection is answered as its code says. */
export type Era = { readonly era: 'legacy' } | { readonly era: 'modern' } | Rejection;

const LEGACY: Era = { era: 'legacy' };
const MODERN: Era = { era: 'modern' };
const SIGNAL_KEYS = [META.version, META.capabilities, META.clientInfo];

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value;
}

function reject(code: Code, data?: JsonObject): Rejection {
  return { era: 'rejected', code, data };
}

function mismatch(header: string, body: string): Rejection {
  return reject('proxy/era-mismatch', { header, body });
}

/**
 * Decides which revision family a POST speaks, in the order of docs/behaviour/proxy.md#revisions (MCP 2026-07-28,
 * versioning). `served` is what the endpoint names where it serves no such version; the modern one is in it or not.
 */
export function eraOf(
  headers: IncomingHttpHeaders,
  message: Message,
  served: readonly string[] = [MODERN_VERSION],
): Era {
  const header = headerVersion(headers);
  const isModernHeader = header === MODERN_VERSION;
  if (message.kind === 'response') return isModernHeader ? MODERN : LEGACY;
  const meta = memberAt(message.value, REQUEST_META);
  if (!isModernHeader && !SIGNAL_KEYS.some((key) => member(meta, key) !== undefined)) return LEGACY;
  const body = member(meta, META.version);
  if (header !== undefined && !isModernHeader && body === undefined) return LEGACY;
  if (REMOVED.has(message.method)) return reject('proxy/era-method');
  // Nothing requires an envelope of a notification.
  const isBare = message.kind === 'notification' && body === undefined;
  if (!isBare && (typeof body !== 'string' || !isRecord(member(meta, META.capabilities))))
    return reject('proxy/era-params');
  if (header !== undefined && typeof body === 'string' && header !== body) return mismatch(header, body);
  const requested = body ?? MODERN_VERSION;
  if (requested !== MODERN_VERSION || !served.includes(MODERN_VERSION))
    return reject('proxy/era-version', { supported: served, requested });
  return headerMismatch(headers, message) ?? MODERN;
}

function headerVersion(headers: IncomingHttpHeaders): string | undefined {
  return single(headers['mcp-protocol-version'])?.trim();
}

/** Modern requests repeat method and name in headers, and both must agree with the body. */
function headerMismatch(
  headers: IncomingHttpHeaders,
  message: Exclude<Message, { kind: 'response' }>,
): Rejection | undefined {
  const method = single(headers['mcp-method'])?.trim();
  if (method === undefined && message.kind === 'notification') return undefined;
  if (method !== message.method) return mismatch(method ?? '', message.method);
  const parameter = NAMED_PARAMETER.get(message.method);
  if (parameter === undefined) return undefined;
  const name = unwrapped(single(headers['mcp-name'])?.trim() ?? '') ?? '';
  const wanted = memberAt(message.value, ['params', parameter]);
  if (name === wanted && name !== '') return undefined;
  return mismatch(name, typeof wanted === 'string' ? wanted : '');
}

/** What a header value says: one outside visible ASCII travels as `=?base64?…?=`. Undefined where that cannot be read. */
export function unwrapped(value: string): string | undefined {
  const inner = /^=\?base64\?(.*)\?=$/su.exec(value)?.[1];
  if (inner === undefined) return value;
  const bytes = Buffer.from(inner, 'base64');
  return bytes.toString('base64') === inner && isUtf8(bytes) ? bytes.toString('utf8') : undefined;
}

/** The headers that a modern request has over HTTP. */
export function modernHeaders(message: Exclude<Message, { kind: 'response' }>): Record<string, string> {
  const parameter = NAMED_PARAMETER.get(message.method);
  const name = parameter === undefined ? undefined : memberAt(message.value, ['params', parameter]);
  return {
    'MCP-Protocol-Version': MODERN_VERSION,
    'Mcp-Method': wrapped(message.method),
    ...(typeof name === 'string' ? { 'Mcp-Name': wrapped(name) } : {}),
  };
}

/** A value as a header has it: a space at an end would be trimmed, and what looks wrapped would be unwrapped. */
export function wrapped(value: string): string {
  const isPlain = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/u.test(value) && !value.startsWith('=?base64?');
  return isPlain ? value : `=?base64?${Buffer.from(value).toString('base64')}?=`;
}
