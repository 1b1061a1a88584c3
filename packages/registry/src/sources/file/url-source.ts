import { hash } from 'node:crypto';
import { MAX_CATALOGUE_BYTES } from '@skep/core/catalog/catalogue-text.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Answer } from '@skep/core/fetch/client.ts';
import type { ConditionalSource } from '../source.ts';
import { withClient, conditionsFor, validatorsOf, type OpenClient, type Validators } from '../open-client.ts';
import type { SourceContent } from '../source.ts';
import { splitCredentials } from '../url-credentials.ts';

/** A `file` source with a URL. User information in the URL is sent as basic authentication. */
export interface FileUrlSourceOptions {
  readonly name: string;
  readonly url: string;
  /** Milliseconds for one try; default 30 s. */
  readonly timeoutMs?: number;
  /** Of the document; default 100 MiB. */
  readonly maxBytes?: number;
}

export const TIMEOUT_MS = 30_000;

/**
 * One document at a URL. Unchanged is told by the server (304) or by the hash of what it sent. Making the source fails
 * with `fetch/invalid-url`, fetching with `fetch/*`.
 */
export function fileUrlSource(options: FileUrlSourceOptions, open: OpenClient): ConditionalSource {
  const { name, url: address, timeoutMs = TIMEOUT_MS, maxBytes = MAX_CATALOGUE_BYTES } = options;
  const { url, headers } = splitCredentials(address);
  const label = `${url.origin}${url.pathname}`;
  let last: { readonly hash: string; readonly validators: Validators } | undefined;

  const get = (conditions: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Answer> =>
    withClient(open, { timeoutMs, maxBytes }, (client) =>
      client.get(url.href, { headers: { ...headers, ...conditions }, signal }),
    );

  function take(answer: Answer): SourceContent {
    const { status, body: bytes } = answer;
    if (status !== 200) {
      const message = `"${label}" answered with status ${status} instead of a document`;
      throw new SkepError('fetch/bad-status', { message, detail: { status } });
    }
    const content = { bytes, hash: hash('sha256', bytes) };
    last = { hash: content.hash, validators: validatorsOf(answer.headers) };
    return content;
  }

  return {
    name,
    label,
    fetch: async (signal) => take(await get({}, signal)),
    async fetchIfChanged(known, signal) {
      const conditions = last?.hash === known ? conditionsFor(last.validators) : {};
      const answer = await get(conditions, signal);
      if (answer.status === 304 && Object.keys(conditions).length > 0) return undefined;
      const content = take(answer);
      return content.hash === known ? undefined : content;
    },
  };
}
