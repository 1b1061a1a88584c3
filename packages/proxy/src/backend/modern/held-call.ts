import type { Code } from '@skep/core/errors/codes.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import { findPath, rawAt } from '@skep/core/json/scan.ts';
import {
  findToken,
  memberAt,
  resultOf,
  withId,
  withToken,
  type Message,
  type Request,
  type Response,
} from '../../message/json-rpc.ts';
import { METHODS } from '../../message/methods.ts';
import type { BackendPort, Peer, Waiter } from '../port.ts';
import { modernReply, responsesIn } from './modern-form.ts';

/** Until a question goes to the client, so that others can come with it. */
const ASK_AFTER_MS = 20;
const PROGRESS_TOKEN = ['params', 'progressToken'];
const TOKEN_ASKED = ['params', '_meta', 'progressToken'];

/** The request of a client that waits now: the first one, or one that brought what the server had asked for. */
export interface Asking {
  readonly peer: Peer;
  readonly request: Request;
  readonly waiter: Waiter;
}

export interface HeldCallOptions {
  readonly port: BackendPort;
  readonly clock: Clock;
  /** The call as the server knows it. */
  readonly peer: Peer;
  readonly method: string;
  /** A name under which the client's next request finds this call. */
  waitUnder(call: HeldCall): string;
  over(call: HeldCall): void;
}

/**
 * One call of a modern client to a legacy server, which asks on while the call is open. The client gets its questions as a
 * result, answers them with a new request, and so on until there is an answer (MCP 2026-07-28, multi round-trip requests).
 */
export class HeldCall implements Waiter {
  readonly carries = true;
  readonly #options: HeldCallOptions;
  #asking:
    | {
        readonly peer: Peer;
        readonly id: string;
        readonly token: string | undefined;
        readonly waiter: Waiter;
      }
    | undefined;
  /** What the server asks, by the id that an answer must have. */
  readonly #questions = new Map<string, Request>();

  #isAsking = false;

  constructor(options: HeldCallOptions) {
    this.#options = options;
  }

  get attended(): boolean {
    return this.#asking !== undefined;
  }

  get principal(): string {
    return this.#options.peer.key;
  }

  get method(): string {
    return this.#options.method;
  }

  /** From now on `asking` waits. */
  attach({ peer, request, waiter }: Asking): void {
    const span = findToken(request, TOKEN_ASKED);
    const token = span === undefined ? undefined : rawAt(request.text, span);
    this.#asking = { peer, id: request.id, token, waiter };
  }

  /** Takes the answers that a request brings; what is left open is asked once more. */
  resume(asking: Asking): void {
    const answers = responsesIn(asking.request.text, new Set(this.#questions.keys()));
    this.attach(asking);
    if (answers === undefined) {
      this.#say((waiter) => waiter.fail('proxy/input-invalid'));
      return;
    }
    const { port, peer } = this.#options;
    for (const [id, raw] of answers) {
      const question = this.#questions.get(id);
      if (question !== undefined && port.answer(peer, resultOf(question.id, raw))) this.#questions.delete(id);
    }
    this.#ask();
  }

  /** The client of `peer` has gone; without one that waits, the call stays open for the next request. */
  gone(peer: Peer): void {
    if (this.#asking?.peer !== peer) return;
    this.#asking = undefined;
    this.#options.port.gone(this.#options.peer);
  }

  /** Nobody asked for it in time. */
  abandon(): void {
    this.#options.port.gone(this.#options.peer);
  }

  send(message: Message): void {
    if (message.kind === 'request') {
      this.#questions.set(questionName(message), message);
      this.#ask();
    } else if (message.kind === 'notification') this.#pass(message);
  }

  finish(reply: Response): void {
    const { method } = this.#options;
    this.#options.over(this);
    this.#say((waiter, id) => waiter.finish(modernReply(withId(reply, id), method)));
  }

  fail(code: Code, said?: string): void {
    this.#options.over(this);
    this.#say((waiter) => waiter.fail(code, said));
  }

  #pass(message: Message): void {
    if (message.kind !== 'notification') return;
    if (message.method === METHODS.cancelled) this.#withdraw(message);
    else if (message.method !== METHODS.progress) this.#asking?.waiter.send(message);
    else if (this.#asking?.token !== undefined)
      this.#asking.waiter.send(withToken(message, PROGRESS_TOKEN, this.#asking.token));
  }

  /** The server needs no answer any more. */
  #withdraw(message: Message): void {
    const id = String(memberAt(message.value, ['params', 'requestId']));
    for (const [name, question] of this.#questions) if (question.id === id) this.#questions.delete(name);
  }

  /** What a server asks at once comes one after another, and is one round for the client. */
  #ask(): void {
    if (this.#isAsking) return;
    this.#isAsking = true;
    this.#options.clock.after(ASK_AFTER_MS, () => {
      this.#isAsking = false;
      this.#askNow();
    });
  }

  /** Hands the open questions to the client that waits. */
  #askNow(): void {
    if (this.#questions.size === 0 || this.#asking === undefined) return;
    const requests = [...this.#questions].map(([name, { text, method }]) => {
      const params = findPath(text, ['params']);
      return `${JSON.stringify(name)}:{"method":${JSON.stringify(method)},"params":${params === undefined ? '{}' : rawAt(text, params)}}`;
    });
    const state = this.#options.waitUnder(this);
    const result = `{"resultType":"input_required","inputRequests":{${requests.join(',')}},"requestState":"${state}"}`;
    this.#say((waiter, id) => waiter.finish(resultOf(id, result)));
  }

  /** The last word to the request that waits, which waits no longer then. */
  #say(word: (waiter: Waiter, id: string) => void): void {
    const asking = this.#asking;
    this.#asking = undefined;
    if (asking !== undefined) word(asking.waiter, asking.id);
  }
}

/** What an answer is given under. */
function questionName({ id }: Request): string {
  return `question-${id}`;
}
