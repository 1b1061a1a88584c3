import { SkepError } from '@skep/core/errors/skep-error.ts';
import { HOP_BY_HOP } from '@skep/proxy/backend/http/hop-headers.ts';
import { checkName, formatReference } from '../secrets/reference.ts';
import type { SecretEnv } from '../secrets/workload-secrets.ts';
import type { RunConfig } from './run-config.ts';
import { webhookReferences, type WebhookConfig } from './webhooks.ts';

/** The member of a run configuration that says what a server elsewhere is sent with each request. */
export type HeaderForward = NonNullable<RunConfig['header_forward']>;

const MAX_NAME_CHARS = 256;
const MAX_VALUE_CHARS = 8_192;
/** RFC 9110 §5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/u;
/** The proxy's own, of the connection or of MCP (docs/behaviour/proxy.md#remote-servers). */
const REFUSED: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  'host',
  'content-length',
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
  'mcp-session-id',
  'mcp-protocol-version',
  'last-event-id',
]);

/**
 * The headers as they are kept, each name once, as it was last written; one from a secret stands for a plain one. Undefined
 * where there are none. Fails with `usage/invalid-value`, never telling a value.
 */
export function checkHeaders({
  add_plaintext_headers: plain = {},
  add_headers_from_secret: secret = {},
}: HeaderForward): HeaderForward | undefined {
  const open = byName(plain);
  const hidden = byName(secret);
  for (const [name, value] of open.values()) checkValue(name, value);
  for (const [, stored] of hidden.values()) checkName(stored);
  for (const key of hidden.keys()) open.delete(key);
  if (open.size + hidden.size === 0) return undefined;
  return {
    ...(open.size === 0 ? {} : { add_plaintext_headers: Object.fromEntries(open.values()) }),
    ...(hidden.size === 0 ? {} : { add_headers_from_secret: Object.fromEntries(hidden.values()) }),
  };
}

/** Names of headers do not differ by case (RFC 9110 §5.1). */
function byName(headers: Readonly<Record<string, string>>): Map<string, readonly [string, string]> {
  const entries = Object.entries(headers).map(([written, value]) => {
    const name = written.trim();
    if (!TOKEN.test(name) || name.length > MAX_NAME_CHARS)
      throw invalid(`invalid header name: ${JSON.stringify(name.slice(0, 80))}`, 'give Name=Value');
    if (REFUSED.has(name.toLowerCase()))
      throw invalid(`the header "${name}" cannot be forwarded`, 'leave it out: the proxy sets it itself');
    return [name.toLowerCase(), [name, value]] as const;
  });
  return new Map(entries);
}

function checkValue(name: string, value: string): void {
  if (value.length <= MAX_VALUE_CHARS && !/[\p{Cc}]|[^\u0020-\u00ff]/u.test(value)) return;
  throw invalid(
    `the value of the header "${name}" cannot be sent`,
    `it may have up to ${MAX_VALUE_CHARS} characters, no control characters among them`,
  );
}

function invalid(message: string, hint: string): SkepError {
  return new SkepError('usage/invalid-value', { message, hint });
}

/** Where the value of a header is among the secrets of a start. */
const targetOf = (at: number): string => `SKEP_REMOTE_HEADER_${at}`;

interface UsesSecrets extends WebhookConfig {
  readonly secrets?: readonly string[] | undefined;
  readonly header_forward?: RunConfig['header_forward'] | undefined;
}

/**
 * References to the secrets of a workload: its own, those of the headers that its server elsewhere is sent, and those that
 * questions to webhooks are signed with.
 */
export function referencesOf(config: UsesSecrets): readonly string[] {
  const { secrets = [], header_forward } = config;
  const names = Object.values(header_forward?.add_headers_from_secret ?? {});
  const ofHeaders = names.map((name, at) => formatReference({ name, target: targetOf(at) }));
  return [...secrets, ...ofHeaders, ...webhookReferences(config)];
}

/** What is sent with each request. Fails with `usage/invalid-value`, and `secrets/not-found` for a secret that is gone. */
export function headersOf(
  { header_forward: headers = {} }: Pick<RunConfig, 'header_forward'>,
  secrets: SecretEnv,
): Readonly<Record<string, string>> {
  const hidden = Object.keys(headers.add_headers_from_secret ?? {}).map((name, at) => {
    const value = secrets[targetOf(at)];
    if (value === undefined)
      throw new SkepError('secrets/not-found', { message: `the value of the header "${name}" is not there` });
    checkValue(name, value);
    return [name, value] as const;
  });
  return { ...headers.add_plaintext_headers, ...Object.fromEntries(hidden) };
}
