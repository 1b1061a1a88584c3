import type { Clock } from '@skep/core/time/clock.ts';
import { memberAt, type Response } from '../message/json-rpc.ts';
import { BoundedNames, type Known } from './bounded-names.ts';
import type { Call } from './call.ts';
import type { Step } from './chain.ts';

/** What was counted of one tool since the proxy started. */
export interface ToolCount {
  readonly name: string;
  readonly calls: number;
  /** Calls without an answer, and answers that say that it failed. */
  readonly errors: number;
  /** Of all calls together. */
  readonly ms: number;
}

type Counting = { -readonly [Member in keyof ToolCount]: ToolCount[Member] };

/** The calls of a server's tools, in a bounded number of rows (docs/behaviour/proxy.md#counts). */
export class ToolCounts {
  readonly #names = new BoundedNames();
  readonly #counts = new Map<string, Counting>();

  /** In the order in which the tools were first called. */
  get all(): readonly ToolCount[] {
    return [...this.#counts.values()];
  }

  add(name: string, known: Known, ms: number): void {
    const label = this.#names.label(name, known);
    let count = this.#counts.get(label);
    if (count === undefined) {
      count = { name: label, calls: 0, errors: 0, ms: 0 };
      this.#counts.set(label, count);
    }
    count.calls += 1;
    if (known !== 'taken') count.errors += 1;
    count.ms += ms;
  }
}

/** Counts the calls of tools; what is no such call goes by untouched. */
export function countTools(counts: ToolCounts, clock: Clock): Step {
  return (call, next) => {
    const message = call.incoming?.message;
    if (message?.kind === 'request' && message.method === 'tools/call' && !call.isOwn) {
      const name = memberAt(message.value, ['params', 'name']);
      if (typeof name === 'string') watch(call, new CountedCall(name, counts, clock));
    }
    return next();
  };
}

/** Leads to nothing of the call but the name of its tool. */
class CountedCall {
  readonly #name: string;
  readonly #counts: ToolCounts;
  readonly #clock: Clock;
  readonly #begun: number;
  #isCounted = false;

  constructor(name: string, counts: ToolCounts, clock: Clock) {
    this.#name = name;
    this.#counts = counts;
    this.#clock = clock;
    this.#begun = clock.elapsed();
  }

  count(known: Known): void {
    if (this.#isCounted) return;
    this.#isCounted = true;
    this.#counts.add(this.#name, known, this.#clock.elapsed() - this.#begun);
  }
}

function watch(call: Call, counted: CountedCall): void {
  const { res } = call;
  call.answerHooks.push((answer) => counted.count(knownBy(answer)));
  res.on('close', () => {
    // A server of HTTP with SSE says more on another stream.
    if (res.writableFinished && res.statusCode === 202) return;
    counted.count(res.writableFinished && res.statusCode < 400 ? 'taken' : 'failed');
  });
}

/** JSON-RPC 2.0 §5.1: the method is not found, or the parameters are wrong, which is how servers say that there is no such tool. */
const UNKNOWN = new Set<unknown>([-32601, -32602]);

/** What an answer says of the thing that was called. */
export function knownBy(answer: Response): Known {
  if (answer.failed) return UNKNOWN.has(memberAt(answer.value, ['error', 'code'])) ? 'unknown' : 'failed';
  return saysError(answer) ? 'failed' : 'taken';
}

/** True for the result of a tool that failed. Most do not name it at all, and are not parsed for it where bytes are relayed. */
export function saysError(answer: Response): boolean {
  const { text } = answer;
  if (!text.includes('isError') && !text.includes('\\')) return false;
  return memberAt(answer.value, ['result', 'isError']) === true;
}
