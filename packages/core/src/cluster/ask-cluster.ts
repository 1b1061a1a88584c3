import { SkepError } from '../errors/skep-error.ts';
import { badStatus, saidIn } from '../fetch/client.ts';
import { readLimited } from '../fetch/read-limited.ts';
import {
  openRequester,
  shownUrl,
  withDeadline,
  type Requester,
  type Sending,
  type StreamedAnswer,
} from '../fetch/requester.ts';
import { isRecord } from '../json/is-record.ts';
import { judge } from '../json/judge.ts';
import { parseJson } from '../json/parsed-json.ts';
import { clusterAccess, type ClusterAccess, type ClusterPlace } from './cluster-access.ts';

const ANSWER_MS = 30_000;
/** What the API server itself accepts (Go reads 10,000 levels), so that no object hides the others of its list. */
const MAX_LEVELS = 20_000;
const JSON_TYPE = 'application/json';

export interface AskerOptions extends ClusterPlace {
  /** `skep-registry/<version>`. */
  readonly userAgent: string;
}

export interface Question {
  /** Below the address of the API server, without a slash at its start. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly accept?: string;
  readonly method?: Sending['method'];
  /** Sent as JSON of that type (RFC 9110 §8.3). */
  readonly body?: { readonly type: string; readonly value: unknown };
}

/** Sends requests to one cluster, with what it is shown at that moment. */
export interface Asker {
  /** The answer as it streams in, where it is a success. Fails as `Client.get`, and with `source/invalid-cluster`. */
  readonly ask: (question: Question, signal: AbortSignal) => Promise<StreamedAnswer>;
  /** A JSON object of at most so many bytes. Fails as `ask`, and with `source/bad-answer`. */
  readonly getJson: (
    question: Question,
    maxBytes: number,
    signal: AbortSignal,
  ) => Promise<Readonly<Record<string, unknown>>>;
  readonly close: () => void;
}

/** Opens no connection before the first question (decision 0397). */
export function openAsker({ userAgent, ...place }: AskerOptions): Asker {
  const requesters = new Map<string, Requester>();
  /** Who trusts other authorities is another requester; those of before have no more requests. */
  function requesterFor({ ca, verify }: ClusterAccess): Requester {
    const key = JSON.stringify([ca, verify]);
    const known = requesters.get(key);
    if (known !== undefined) return known;
    const made = openRequester({ allowPrivate: true, verify, ...(ca === undefined ? {} : { onlyCa: [ca] }) });
    requesters.set(key, made);
    return made;
  }
  /** The answer to a request, if it is a success; only the address of the cluster itself is shown anything. */
  async function send(
    access: ClusterAccess,
    { accept = JSON_TYPE, method, body, ...asked }: Question,
    signal: AbortSignal,
  ): Promise<StreamedAnswer> {
    const url = addressOf(access, asked);
    const { headers, identity } = access.shown;
    const text = body === undefined ? undefined : JSON.stringify(body.value);
    // Node frames the body of a DELETE only where its length is said.
    const about =
      text === undefined
        ? {}
        : { 'content-type': body?.type ?? JSON_TYPE, 'content-length': String(Buffer.byteLength(text)) };
    const said = { 'user-agent': userAgent, 'accept-encoding': 'identity', accept, ...about, ...headers };
    const shown = { headers: said, ...(identity === undefined ? {} : { identity }) };
    const answer = await requesterFor(access).send(url, {
      showTo: () => shown,
      redirects: 'answer',
      signal,
      ...(method === undefined ? {} : { method }),
      ...(text === undefined ? {} : { body: text }),
    });
    if (answer.status >= 200 && answer.status <= 202) return answer;
    const words = await saidIn(answer.body);
    answer.drop();
    throw badStatus({ url, status: answer.status, said: words });
  }
  return {
    ask: async (question, signal) => send(await clusterAccess(place), question, signal),
    getJson: async (question, maxBytes, signal) => {
      const access = await clusterAccess(place);
      const url = addressOf(access, question);
      return withDeadline({ url, timeoutMs: ANSWER_MS, signal }, async (inTime) => {
        const { body, headers } = await send(access, question, inTime);
        const text = (await readLimited(body, maxBytes, headers['content-length'])).toString('utf8');
        const value = valueOf(text);
        if (isRecord(value)) return value;
        throw badAnswer(url, 'no JSON object');
      });
    },
    close: () => {
      for (const requester of requesters.values()) requester.close();
    },
  };
}

/** Where a question goes. */
export function addressOf({ server }: Pick<ClusterAccess, 'server'>, { path, query = {} }: Question): URL {
  const url = new URL(server);
  url.pathname = `${url.pathname.replace(/\/+$/u, '')}/${path}`;
  url.search = new URLSearchParams(query).toString();
  return url;
}

/** Undefined for what is no JSON. */
export function valueOf(text: string): unknown {
  return judge(text, MAX_LEVELS) === 'json' ? parseJson(text) : undefined;
}

export function badAnswer(where: URL | string, what: string): SkepError {
  const shown = typeof where === 'string' ? where : shownUrl(where);
  return new SkepError('source/bad-answer', {
    message: `the cluster answered ${what} to "${shown}"`,
    hint: 'check that the address is one of a Kubernetes API server',
  });
}
