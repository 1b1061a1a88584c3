import { createClient, type Answer, type Client } from '@skep/core/fetch/client.ts';
import type { RetryOptions } from '@skep/core/fetch/retry.ts';

/** What one fetch of a source may take. */
export interface FetchLimits {
  /** Milliseconds for one request, body included. */
  readonly timeoutMs: number;
  /** Bytes of one answer. */
  readonly maxBytes: number;
}

/** Opens a client for the requests of one fetch; who opens it closes it, so no connection idles until the next interval. */
export type OpenClient = (limits: FetchLimits) => Promise<Client>;

export interface ClientSettings {
  /** `skep-registry/<version>`. */
  readonly userAgent: string;
  /** False refuses sources at private, loopback and link-local addresses, also behind redirects. */
  readonly allowPrivate: boolean;
  /** Extra certificate authorities, PEM. */
  readonly ca?: readonly string[];
  readonly retry?: Partial<RetryOptions>;
}

/** Three tries, one and two seconds apart; a server that asks for a longer wait gets the next interval. */
const RETRY = { tries: 3, baseMs: 1_000, capMs: 60_000 } as const;

export function clientOpener({ retry, ...settings }: ClientSettings): OpenClient {
  return async (limits) => createClient({ ...settings, ...limits, retry: { ...RETRY, ...retry } });
}

/** Gives `use` a client and closes it, however `use` ends. */
export async function withClient<T>(
  open: OpenClient,
  limits: FetchLimits,
  use: (client: Client) => Promise<T>,
): Promise<T> {
  const client = await open(limits);
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}

/** Headers that ask for a document only when it has changed; none when there is nothing to go by (RFC 9110 §13.1). */
export type Conditions = Readonly<Record<string, string>>;

/** The conditions for asking once more for what a server answered. */
export function conditionsAfter({ headers: { etag, 'last-modified': modified } }: Answer): Conditions {
  return {
    ...(etag ? { 'if-none-match': etag } : {}),
    ...(modified ? { 'if-modified-since': modified } : {}),
  };
}

/** Whether an answer says that nothing changed, as only one to a question with conditions can. */
export function isUnchanged({ status }: Answer, conditions: Conditions): boolean {
  return status === 304 && Object.keys(conditions).length > 0;
}
