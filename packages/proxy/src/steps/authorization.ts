import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Code } from '@skep/core/errors/codes.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { Call } from '../call/call.ts';
import type { Step } from '../call/chain.ts';
import { principalOf } from '../call/principal.ts';
import { refuse } from '../call/refuse.ts';
import { idOf, memberAt, type Message, type Response } from '../message/json-rpc.ts';
import { ListReader } from '../message/list-answer.ts';
import { LISTS, listeningTo, needOf, type ListShape, type Sent } from './authz/methods.ts';
import { itemOf, type Item } from './authz/list-items.ts';
import type { Authorizer, Decide, Question } from './authz/question.ts';
import { readRules } from './authz/rules.ts';
import { ServerTools } from './authz/server-tools.ts';
import { TASK_ID, TaskOwners } from './authz/tasks.ts';
import type { Part, PartServices } from './part.ts';

/** An authorization configuration (docs/behaviour/proxy.md#authorization), as it is written. */
export interface AuthzSettings {
  readonly document: Readonly<Record<string, unknown>>;
}

/** Fails with `usage/invalid-value` for what `readRules` or Cedar refuses, with `file/unreadable` for a broken installation. */
export async function openAuthorization(
  { document }: AuthzSettings,
  services: Pick<PartServices, 'clock' | 'log' | 'name' | 'ask' | 'transport'>,
): Promise<Part> {
  const authorizer = await openAuthorizer(document, services);
  const tools = authorizer.heedsHints === true ? new ServerTools(services) : undefined;
  const tasks = new TaskOwners();
  return {
    steps: { authorization: authorization(authorizer, services.clock, { tools, tasks }) },
    toolsChanged: () => tools?.forget(),
    serverStarted: () => tasks.forget(),
    close: () => authorizer.close?.(),
  };
}

async function openAuthorizer(
  document: unknown,
  services: Pick<PartServices, 'log' | 'name'>,
): Promise<Authorizer> {
  const rules = readRules(document);
  if (rules.type === 'httpv1') return (await import('./authz/pdp.ts')).openPdp(rules, services);
  const authorizer = await (await import('./authz/cedar.ts')).openCedar(rules, services);
  const closing = new AbortController();
  const [{ loadCedar }, { warmUp }] = await Promise.all([
    import('./authz/cedar-engine.ts'),
    import('./authz/warm-up.ts'),
  ]);
  warmUp(await loadCedar(), closing.signal).catch((err: unknown) =>
    services.log.warn({ err }, 'Cedar could not be warmed up'),
  );
  return { ...authorizer, close: () => closing.abort() };
}

/** Decisions that wait for a decision point at once, of one list. */
const LANES = 8;
/** Of decisions in one go; others want their turn. */
const TURN_MS = 10;

/**
 * The row `authorization`: what a caller may not use is refused before the server hears of it, and is in no list that the
 * caller gets, whatever stream that comes on.
 */
export function authorization(
  authorizer: Authorizer,
  clock: Pick<Clock, 'elapsed'>,
  known: Known = { tasks: new TaskOwners() },
): Step {
  const gate = new Gate(clock, known);
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
      const refusal = await gate.refusalOf(call, sent, who);
      if (refusal !== undefined) {
        refuse(res, refusal, { id: idOf(sent) });
        return;
      }
      if (sent.kind === 'request') gate.watchAnswer(call, sent.method, who);
    }
    await next();
  };
}

/** What is known of the server and its clients. */
interface Known {
  readonly tasks: TaskOwners;
  /** Undefined where nothing depends on what a server says of its tools. */
  readonly tools?: ServerTools | undefined;
}

/** What all calls of one proxy share. */
class Gate {
  readonly #clock: Pick<Clock, 'elapsed'>;
  readonly #tools: ServerTools | undefined;
  readonly #tasks: TaskOwners;
  readonly #readers = new Map<ListShape, ListReader<Item>>();

  constructor(clock: Pick<Clock, 'elapsed'>, { tools, tasks }: Known) {
    this.#clock = clock;
    this.#tools = tools;
    this.#tasks = tasks;
  }

  /** Why a message goes no further; a server that could not be asked about a tool has forbidden nothing. */
  async refusalOf(call: Call, sent: Sent, who: Who): Promise<Code | undefined> {
    try {
      return (await this.#admits(call, sent, who)) ? undefined : 'proxy/unauthorized';
    } catch (error) {
      if (!(error instanceof SkepError) || !/^(?:proxy|auth)\//u.test(error.code)) throw error;
      return error.code;
    }
  }

  async #admits(call: Call, sent: Sent, who: Who): Promise<boolean> {
    const need = needOf(sent);
    if (need.kind === 'nothing') return true;
    if (need.kind === 'task') return this.#tasks.owns(need.taskId, who.principal);
    if (need.kind === 'listen') return this.#narrow(call, sent, need.uris, who);
    if (need.kind === 'refusal') return false;
    const { question } = need;
    if (question.kind !== 'tool' || this.#tools === undefined) return who.decide(question);
    const hints = await this.#tools.hintsOf(question.id, call, who.principal);
    return hints !== undefined && who.decide({ ...question, hints });
  }

  /** Takes what the caller may not have out of the answer, and notes which task it began. */
  watchAnswer({ answerHolds, replyHooks }: Call, method: string, who: Who): void {
    const list = LISTS.get(method);
    const generation = this.#tools?.generation ?? 0;
    if (list !== undefined) {
      const ready = new WeakMap<Message, Message>();
      answerHolds.push(async (answer) => {
        const passed = await this.#shown(answer, list, { ...who, generation });
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
  async #shown(
    answer: Response,
    list: ListShape,
    who: Who & { readonly generation: number },
  ): Promise<Message | undefined> {
    if (answer.failed) return answer;
    const read = this.#readerOf(list).read(answer);
    if (read === undefined) return undefined;
    const { items } = read;
    this.#tools?.heard(items, who.principal, who.generation);
    const decide = (item: Item): boolean | Promise<boolean> =>
      item.kind === 'task'
        ? this.#tasks.owns(item.id, who.principal)
        : who.decide({ ...item, kind: item.kind });
    return read.with(await decideAll(items, decide, this.#clock));
  }

  #readerOf(list: ListShape): ListReader<Item> {
    const known = this.#readers.get(list);
    if (known !== undefined) return known;
    const reader = new ListReader(list.member, (text) => itemOf(text, list));
    this.#readers.set(list, reader);
    return reader;
  }
}

/** Who asks. */
interface Who {
  readonly decide: Decide;
  readonly principal: string;
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
