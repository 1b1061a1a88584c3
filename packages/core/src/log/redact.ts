const REDACTED = '[redacted]';
const MAX_DEPTH = 10;

/** How names of secrets end, without case and separators: `client_secret`, `X-Api-Key`. */
const SECRET_ENDINGS = [
  'authorization',
  'cookie',
  'token',
  'secret',
  'password',
  'passwd',
  'passphrase',
  'apikey',
  'accesskey',
  'privatekey',
  'credential',
  'credentials',
  'codeverifier',
];

/** True when a member or header of this name is never shown. */
export function isSecretName(name: string): boolean {
  const plain = name.toLowerCase().replace(/[^a-z0-9]/gu, '');
  return SECRET_ENDINGS.some((ending) => plain.endsWith(ending));
}

/**
 * A copy of `value` fit for logs: members with secret names become `[redacted]` at any depth, as do values
 * that a server document calls secret; texts are redacted (`redactText`), errors become plain objects, byte
 * arrays their length.
 */
export function redact(value: unknown): unknown {
  return copy(value, 0);
}

/** The text without user information of URLs (RFC 3986 §3.2.1) and secrets of their queries. */
export function redactUrl(text: string): string {
  return (
    text
      // Up to the last @ before the path: a password may hold a raw @. Not from the scheme on, which may be as long as a caller
      // likes and would be looked for from each of its letters.
      .replace(/:\/\/[^/?#\s]*@/gu, `://${REDACTED}@`)
      .replace(/([?&])([\w.~%-]{1,100})=([^&#\s"'<>]+)/gu, (whole, before: string, name: string) =>
        isSecretName(name) || SIGNATURES.has(name.toLowerCase()) ? `${before}${name}=${REDACTED}` : whole,
      )
  );
}

/** Query parameters that make a URL a key to what it names. */
const SIGNATURES: ReadonlySet<string> = new Set([
  'sig',
  'signature',
  'x-amz-signature',
  'x-goog-signature',
  'key',
]);

/** Text without URL user information and without `Bearer …`/`Basic …` credentials. */
export function redactText(text: string): string {
  return redactUrl(text).replace(/\b(bearer|basic)\s+[\w.~+/=-]{8,}/giu, `$1 ${REDACTED}`);
}

function copy(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return redactText(value);
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Date) return value;
  if (value instanceof URL) return redactText(value.href);
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (depth >= MAX_DEPTH) return '[too deep]';
  if (value instanceof Error) return copyError(value, depth);
  if (Array.isArray(value)) return value.map((item) => copy(item, depth + 1));
  return copyMembers(value, depth);
}

function copyMembers(value: object, depth: number): Record<string, unknown> {
  const secretValue = isSecretInput(value);
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      (isSecretName(name) || (secretValue && VALUES.has(name))) &&
      typeof member !== 'boolean' &&
      member !== null &&
      member !== undefined
        ? REDACTED
        : copy(member, depth + 1),
    ]),
  );
}

const VALUES: ReadonlySet<string> = new Set(['value', 'default']);

/** `{ "name": "API_KEY", "isSecret": true, "value": … }`, as server documents have them. */
function isSecretInput(value: object): boolean {
  if ('isSecret' in value && value.isSecret === true) return true;
  return 'name' in value && typeof value.name === 'string' && isSecretName(value.name);
}

/** Message, stack and cause are not enumerable. */
function copyError(error: Error, depth: number): Record<string, unknown> {
  return {
    type: error.name,
    message: redactText(error.message),
    ...(error.stack === undefined ? {} : { stack: redactText(error.stack) }),
    ...(error.cause === undefined ? {} : { cause: copy(error.cause, depth + 1) }),
    ...copyMembers(error, depth),
  };
}
