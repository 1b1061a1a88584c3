import * as shape from '@skep/core/settings/shape.ts';
import { parseDuration } from '@skep/core/time/duration.ts';

const MIN_TIMEOUT_MS = 1_000;
const MAX_TIMEOUT_MS = 30_000;
export const DEFAULT_TIMEOUT_MS = 10_000;
const NANOSECONDS = 1_000_000;

/** In milliseconds; Go's notation or nanoseconds, and the default where nothing is said. Undefined for what is neither. */
export function webhookTimeout(value: unknown): number | undefined {
  if (value === undefined || value === null || value === '' || value === 0) return DEFAULT_TIMEOUT_MS;
  if (typeof value === 'number') return value / NANOSECONDS;
  try {
    return typeof value === 'string' ? parseDuration(value) : undefined;
  } catch {
    return undefined;
  }
}

const timeout: shape.Shape<string | number | undefined> = (value, fail) => {
  const ms = webhookTimeout(value);
  if (ms === undefined || ms < MIN_TIMEOUT_MS || ms > MAX_TIMEOUT_MS)
    return fail('is not a duration from 1s to 30s');
  return typeof value === 'string' || typeof value === 'number' ? value : undefined;
};

const named = shape.textThat((text) => text.trim() !== '', 'is empty');
/** Other tools write an empty text for "not given". */
const maybe: shape.Shape<string | undefined> = (value, fail) =>
  shape.orEmpty<string | undefined>(shape.noNul, undefined)(value, fail) || undefined;

const tls = shape.exactly({
  ca_bundle_path: maybe,
  client_cert_path: maybe,
  client_key_path: maybe,
  insecure_skip_verify: shape.orEmpty<boolean | undefined>(shape.bool, undefined),
});

const members = shape.exactly({
  name: named,
  url: named,
  timeout,
  failure_policy: shape.oneOf('fail', 'ignore'),
  tls_config: shape.orEmpty<shape.ShapeType<typeof tls> | undefined>(tls, undefined),
  hmac_secret_ref: maybe,
});

/** A webhook as its file and a saved configuration have it (docs/behaviour/proxy.md#webhooks). */
export type StoredWebhook = shape.ShapeType<typeof members>;

const webhook: shape.Shape<StoredWebhook> = (value, fail) => {
  const read = members(value, fail);
  const {
    client_cert_path: cert,
    client_key_path: key,
    insecure_skip_verify: loose = false,
  } = read.tls_config ?? {};
  const url = URL.parse(read.url);
  if (url === null || !['https:', 'http:'].includes(url.protocol)) fail('is no https URL', 'url');
  if (url?.protocol === 'http:' && !loose)
    fail('is plain HTTP, which needs "insecure_skip_verify": true', 'url');
  if (url?.username !== '' || url.password !== '') fail('holds a login', 'url');
  if ((cert === undefined) !== (key === undefined))
    fail('needs both client_cert_path and client_key_path, or neither', 'tls_config');
  return read;
};

/** Two of one name in one list are one too many. */
export const webhooksShape: shape.Shape<readonly StoredWebhook[]> = (value, fail) => {
  const read = shape.listOf(webhook)(value, fail);
  const twice = read.findIndex(({ name }, at) => read.findIndex((one) => one.name === name) !== at);
  return twice === -1 ? read : fail(`"${read[twice]?.name ?? ''}" is there twice`, twice, 'name');
};
