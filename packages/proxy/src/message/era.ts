import { isRecord } from '@skep/core/json/is-record.ts';
import type { IncomingHttpHeaders } from 'node:http';
import type { Code } from '@skep/core/errors/codes.ts';
import { member, memberAt, type JsonObject, type Message } from './json-rpc.ts';
import { METHODS, NAMED_PARAMETER } from './methods.ts';
import { MODERN_VERSION } from './protocol-version.ts';

export interface Rejection {
  readonly era: 'rejected';
  readonly code: Code;
  readonly data: JsonObject | undefined;
}

/** `legacy` has sessions and initialize, `modern` is stateless; a rejection is answered with HTTP 400. */
export type Era = { readonly era: 'legacy' } | { readonly era: 'modern' } | Rejection;

const LEGACY: Era = { era: 'legacy' };
const MODERN: Era = { era: 'modern' };
const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';
const CAPABILITIES_KEY = 'io.modelcontextprotocol/clientCapabilities';
const SIGNAL_KEYS = [VERSION_KEY, CAPABILITIES_KEY, 'io.modelcontextprotocol/clientInfo'];

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value;
}

function reject(code: Code, data?: JsonObject): Rejection {
  return { era: 'rejected', code, data };
}

function mismatch(header: string, body: string): Rejection {
  return reject('proxy/era-mismatch', { header, body });
}

/** Decides which revision family a POST speaks, by the rules of MCP 2026-07-28, versioning. */
export function eraOf(headers: IncomingHttpHeaders, message: Message): Era {
  if (message.kind === 'response') return headerVersion(headers) === MODERN_VERSION ? MODERN : LEGACY;
  if (message.method === METHODS.initialize) return LEGACY;
  const header = headerVersion(headers);
  const meta = memberAt(message.value, ['params', '_meta']);
  if (header !== MODERN_VERSION && !SIGNAL_KEYS.some((key) => member(meta, key) !== undefined)) return LEGACY;
  const body = member(meta, VERSION_KEY);
  if (body === undefined) return withoutBodyVersion(header);
  if (body !== MODERN_VERSION)
    return reject('proxy/era-version', { supported: [MODERN_VERSION], requested: body });
  if (header !== undefined && header !== body) return mismatch(header, body);
  if (!isRecord(member(meta, CAPABILITIES_KEY))) {
    return reject('proxy/era-capabilities', { requiredCapabilities: {} });
  }
  return headerMismatch(headers, message) ?? MODERN;
}

function headerVersion(headers: IncomingHttpHeaders): string | undefined {
  return single(headers['mcp-protocol-version'])?.trim();
}

function withoutBodyVersion(header: string | undefined): Era {
  if (header === MODERN_VERSION) return mismatch(header, '');
  return header === undefined ? reject('proxy/era-params') : LEGACY;
}

/** Modern requests repeat method and name in headers, and both must agree with the body. */
function headerMismatch(
  headers: IncomingHttpHeaders,
  message: Exclude<Message, { kind: 'response' }>,
): Rejection | undefined {
  const method = single(headers['mcp-method'])?.trim() ?? '';
  if (method !== message.method) return mismatch(method, message.method);
  const parameter = NAMED_PARAMETER.get(message.method);
  if (parameter === undefined) return undefined;
  const name = decodeWrapped(single(headers['mcp-name'])?.trim() ?? '');
  const wanted = memberAt(message.value, ['params', parameter]);
  if (name === wanted && name !== '') return undefined;
  return mismatch(name, typeof wanted === 'string' ? wanted : '');
}

/** Header values outside visible ASCII travel as `=?base64?…?=`. */
function decodeWrapped(value: string): string {
  const wrapped = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/u.exec(value);
  return wrapped?.[1] === undefined ? value : Buffer.from(wrapped[1], 'base64').toString('utf8');
}
