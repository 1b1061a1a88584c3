import { setImmediate as nextTurn } from 'node:timers/promises';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { findMembers, rawAt } from '@skep/core/json/scan.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import { LRUCache } from 'lru-cache';
import type { Call } from '../call/call.ts';
import type { Step } from '../call/chain.ts';
import { principalOf } from '../call/principal.ts';
import { refuse } from '../call/refuse.ts';
import { idOf, memberAt, type Message, type Response } from '../message/json-rpc.ts';
import { readList } from '../message/list-answer.ts';
import { LISTS, listeningTo, needOf, type ListShape, type Sent } from './authz/methods.ts';
import { HINTS, type Authorizer, type Decide, type Hints, type Question } from './authz/question.ts';
import { readRules } from './authz/rules.ts';
import { TaskOwners } from './authz/tasks.ts';
import type { Part, PartServices } from './part.ts';

/** An authorization configuration (docs/behaviour/proxy.md#authorization), as it is written. */
export interface AuthzSettings {
  readonly document: Readonly<Record<string, unknown>>;
}

/** Fails with `usage/invalid-value` for what `readRules` or Cedar refuses, with `file/unreadable` for a broken installation. */
export async function openAuthorization(
  { document }: AuthzSettings,
  services: Pick<PartServices, 'clock' | 'log' | 'name'>,
): Promise<Part> {
  const authorizer = await openAuthorizer(document, services);
  return {
    steps: { authorization: authorization(authorizer, services.clock) },
    close: () => authorizer.close?.(),
  };
}

async function openAuthorizer(
  document: unknown,
  services: Pick<PartServices, 'log' | 'name'>,
): Promise<Authorizer> {
  const rules = readRules(document);
  if (rules.type === 'httpv1') return (await import('./authz/pdp.ts')).openPdp(rules, services);
  return (await import('./authz/cedar.ts')).openCedar(rules, services);
}

/** Tools whose annotations are remembered: the newest. */
const MAX_TOOLS = 10_000;
/** Decisions that wait for a decision point at once, of one list. */
const LANES = 8;
/** Of decisions in one go; others want their turn. */
const TURN_MS = 10;

/**
 * The row `authorization`: what a caller may not use is refused before the server hears of it, and is in no list that the
 * caller gets, whatever stream that comes on.
 */
export function authorization(authorizer: Authorizer, clock: Pick<Clock, 'elapsed'>): Step {
  const gate = new Gate(clock);
  return async (call, next) => {
    const { incoming, identity, req, res } = call;
    if (identity === undefined) throw new SkepError('internal/bug');
    if (incoming === undefined && req.method === 'POST') {
      refuse(res, 'proxy/not-json-rpc');
      return;
    }
    if (incoming !== undefined && incoming.message.kind !== 'response') {
      const sent = incoming.message;
      const who: Who = { decide: authorizer.decideFor(identity), principal: principalOf(identity) };
      if (!(await gate.admits(call, sent, who))) {
        refuse(res, 'proxy/unauthorized', { id: idOf(sent) });
        return;
      }
      if (sent.kind === 'request') gate.watchAnswer(call, sent.method, who);
    }
    await next();
  };
}

/** What all calls of one proxy share. */
class Gate {
  readonly #clock: Pick<Clock, 'elapsed'>;
  readonly #hints = new LRUCache<string, Hints>({ max: MAX_TOOLS });
  readonly #tasks = new TaskOwners();

  constructor(clock: Pick<Clock, 'elapsed'>) {
    this.#clock = clock;
  }

  async admits(call: Call, sent: Sent, who: Who): Promise<boolean> {
    const need = needOf(sent);
    if (need.kind === 'nothing') return true;
    if (need.kind === 'task') return this.#tasks.owns(need.taskId, who.principal);
    if (need.kind === 'listen') return this.#narrow(call, sent, need.uris, who);
    if (need.kind === 'refusal') return false;
    const { question } = need;
    const hints = question.kind === 'tool' ? this.#hints.get(question.id) : undefined;
    return who.decide({ ...question, hints });
  }

  /** Takes what the caller may not have out of the answer, and notes which task it began. */
  watchAnswer({ answerHolds, replyHooks }: Call, method: string, who: Who): void {
    const list = LISTS.get(method);
    if (list !== undefined) {
      const ready = new WeakMap<Message, Message>();
      answerHolds.push(async (answer) => {
        const passed = await this.#shown(answer, list, who);
        if (passed) ready.set(answer, passed);
      });
      replyHooks.push(({ message }) => (message.kind === 'response' ? ready.get(message) : message));
    } else if (method === 'tools/call') {
      replyHooks.push(({ message }) => {
        if (message.kind === 'response')
          for (const path of TASK_ID) this.#tasks.claim(memberAt(message.value, path), who.principal);
        return message;
      });
    }
  }

  /** The request goes on with the resources that its caller may read. */
  async #narrow(call: Call, sent: Sent, uris: readonly string[], { decide }: Who): Promise<boolean> {
    const questions = uris.map((id): Question => ({ kind: 'resource', id }));
    const verdicts = await decideAll(questions, decide, this.#clock, () => call.res.destroyed);
    const heard = listeningTo(
      sent,
      uris.filter((_, index) => verdicts[index]),
    );
    if (heard === undefined || call.incoming === undefined) return false;
    call.incoming = { ...call.incoming, message: heard };
    const body = Buffer.from(heard.text);
    call.readBody = () => Promise.resolve(body);
    return true;
  }

  /** The answer as the caller may see it; undefined where that cannot be told. */
  async #shown(answer: Response, list: ListShape, who: Who): Promise<Message | undefined> {
    if (answer.failed) return answer;
    const read = readList(answer, list.member);
    const items = read?.items.map((text) => itemOf(text, list));
    if (read === undefined || !items?.every((item) => item !== undefined)) return undefined;
    for (const { kind, id, hints = {} } of items) if (kind === 'tool') this.#hints.set(id, hints);
    const decide = (item: Item): boolean | Promise<boolean> =>
      item.kind === 'task'
        ? this.#tasks.owns(item.id, who.principal)
        : who.decide({ ...item, kind: item.kind });
    return read.with(await decideAll(items, decide, this.#clock));
  }
}

/** Where the name of a task is, in MCP 2025-11-25 and in the extension of later revisions. */
const TASK_ID = [
  ['result', 'task', 'taskId'],
  ['result', 'taskId'],
];

/** Who asks. */
interface Who {
  readonly decide: Decide;
  readonly principal: string;
}

interface Item {
  readonly kind: ListShape['kind'];
  readonly id: string;
  readonly hints?: Hints;
}

/** Undefined for what has no name, or two. */
function itemOf(text: string, { name, kind }: ListShape): Item | undefined {
  const members = findMembers(text, 0, new Set([name, 'annotations']));
  const span = members?.get(name);
  const id = span && parsedJson(rawAt(text, span));
  if (typeof id !== 'string') return undefined;
  const annotations = kind === 'tool' ? members?.get('annotations') : undefined;
  if (annotations === undefined) return { kind, id };
  const said = parsedJson(rawAt(text, annotations));
  const known = HINTS.flatMap((hint) => {
    const value = isRecord(said) ? said[hint] : undefined;
    return typeof value === 'boolean' ? [[hint, value] as const] : [];
  });
  return { kind, id, hints: Object.fromEntries(known) };
}

/** One verdict for each question, in their order; none for the rest once `isGone`. */
async function decideAll<T>(
  questions: readonly T[],
  decide: (question: T) => boolean | Promise<boolean>,
  { elapsed }: Pick<Clock, 'elapsed'>,
  isGone: () => boolean = () => false,
): Promise<readonly boolean[]> {
  const verdicts: boolean[] = [];
  const waiting = questions.entries();
  let began = elapsed();
  const work = async (): Promise<void> => {
    for (const [at, question] of waiting) {
      if (isGone()) return;
      const verdict = decide(question);
      verdicts[at] = typeof verdict === 'boolean' ? verdict : await verdict;
      if (elapsed() - began < TURN_MS) continue;
      await nextTurn();
      began = elapsed();
    }
  };
  await Promise.all(Array.from({ length: LANES }, work));
  return verdicts;
}
