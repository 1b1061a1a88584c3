import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readLimited } from '@skep/core/fetch/read-limited.ts';
import type { Requester, Sending, StreamedAnswer } from '@skep/core/fetch/requester.ts';

const unpacked = promisify(gunzip);

export interface Asking extends Pick<Sending, 'showTo' | 'signal'> {
  /** What to say of another status than 200, 404 and 410. */
  readonly refused: (status: number) => string;
}

/**
 * What a package registry answers, with status 200, 404 or 410. Throws `runtime/prefetch-failed`, which names the
 * registry, or `runtime/aborted`.
 */
export async function askUpstream(
  requester: Requester,
  url: URL,
  { showTo, refused, signal }: Asking,
): Promise<StreamedAnswer> {
  try {
    const answer = await requester.send(url, { showTo, redirects: 'follow', signal });
    if (answer.status === 200 || isMissing(answer)) return answer;
    answer.drop();
    throw notFetchedFrom(refused(answer.status));
  } catch (error) {
    if (signal.aborted) throw new SkepError('runtime/aborted', { cause: error });
    const ours = error instanceof SkepError && error.code.startsWith('fetch/');
    throw ours ? notFetchedFrom(error.message, error) : error;
  }
}

/** True for the answer of a registry that does not have what was asked for. */
export function isMissing({ status }: Pick<StreamedAnswer, 'status'>): boolean {
  return status === 404 || status === 410;
}

export function notFetchedFrom(message: string, cause?: unknown): SkepError {
  return new SkepError('runtime/prefetch-failed', { message, cause });
}

/** Packed answers are unpacked here, up to the limit, because package managers are sent nothing packed. */
export async function plainText(answer: StreamedAnswer, whose: string, maxBytes: number): Promise<string> {
  try {
    const bytes = await readLimited(answer.body, maxBytes, answer.headers['content-length']);
    const packed = answer.headers['content-encoding'] === 'gzip';
    return (packed ? await unpacked(bytes, { maxOutputLength: maxBytes }) : bytes).toString('utf8');
  } catch (cause) {
    throw notFetchedFrom(`${whose} broke off or is too large`, cause);
  }
}
