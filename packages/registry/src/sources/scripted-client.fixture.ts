import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Answer, GetOptions } from '@skep/core/fetch/client.ts';
import type { OpenClient } from './open-client.ts';
import type { Source, SourceContent } from './source.ts';

export interface ScriptedRequest {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
}

/** What a scripted server answers; 200 with an empty body where it does not say. */
export interface ScriptedAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** A client without a network: `answer` plays the server, `requests` tells what was asked. */
export function scriptedClient(answer: (request: ScriptedRequest, index: number) => ScriptedAnswer) {
  const requests: ScriptedRequest[] = [];
  const limits: unknown[] = [];
  let open = 0;
  const get = async (url: string, { headers = {}, signal }: GetOptions = {}): Promise<Answer> => {
    signal?.throwIfAborted();
    const request = { url: new URL(url), headers };
    requests.push(request);
    const { status = 200, headers: answered = {}, body = '' } = answer(request, requests.length - 1);
    if (status !== 304 && (status < 200 || status > 299)) {
      throw new SkepError('fetch/bad-status', { detail: { status } });
    }
    return await Promise.resolve({ status, headers: answered, body: Buffer.from(body), url });
  };
  const opener: OpenClient = (asked) => {
    limits.push(asked);
    open += 1;
    return Promise.resolve({
      get,
      getJson: () => Promise.reject(new SkepError('internal/bug')),
      close: () => {
        open -= 1;
        return Promise.resolve();
      },
    });
  };
  return { opener, requests, limits, stillOpen: () => open };
}

/** Everything that a source holds. */
export async function fetchAll(source: Source, signal: AbortSignal): Promise<SourceContent> {
  const content = await source.fetch(signal);
  if (content === undefined)
    throw new SkepError('internal/bug', { message: 'a source knew what was not known' });
  return content;
}
