import type { Socket } from 'node:net';
import { HARDENINGS } from '../permissions/hardening.ts';
import { foundWeight } from './found-server.ts';
import { CODES, type Code } from '@skep/core/errors/codes.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { nameFullDisk } from '@skep/core/files/write-failure.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import {
  bool,
  listOf,
  members,
  oneOf,
  optional,
  recordOf,
  text,
  wholeNumber,
  type MembersOf,
  type Shape,
  type ShapeType,
} from '@skep/core/settings/shape.ts';

/**
 * What is spoken on the supervisor's socket: JSON lines in UTF-8. The supervisor greets; the client sends one request;
 * the supervisor answers with any number of events and one result or error; the client closes. The greeting and the
 * operation `retire` never change, so that any version can replace any other.
 */
const greeting = members({
  skep: oneOf('supervisor'),
  version: text,
  pid: wholeNumber(),
  started: text,
  /** The directories it works on; see `whatIsKept`. */
  state: text,
  data: text,
});
export type Greeting = ShapeType<typeof greeting>;

const request = variants('op', {
  /**
   * Starts a saved workload, on another port where its own is taken and it is `movable`. Result: endpoint. Closing the
   * connection before the result undoes it. `secrets`: its secret variables, where the command has looked them up.
   * `begunBy`: the process that asks, where that has begun to host it (`beginAhead`) and hands it over.
   * `config`: what it is to be from now on; then it is ended before, and closing the connection undoes nothing.
   */
  start: {
    name: text,
    movable: optional(bool),
    secrets: optional(recordOf(text)),
    begunBy: optional(members({ pid: wholeNumber(), started: text })),
    config: optional((value, refuse) => (isRecord(value) ? value : refuse('is no run configuration'))),
  },
  /**
   * Carries out `skep run` with these arguments, in this environment and working directory, where everything for it is
   * ready; fails with `supervisor/not-here`, and nothing made, where it is not (decision 0048). Events: `told`, then
   * `saved`, then those of a start. Result: endpoint.
   */
  run: { argv: listOf(text), env: recordOf(text), cwd: text },
  /** Result: `{ stopped }`. */
  stop: { name: text, graceMs: wholeNumber() },
  /** Result: `{ stays }`, where data stays. */
  remove: { name: text, data: optional(bool) },
  /** Result: `{ counts }`, what was counted of the tools of all that it hosts, by workload. */
  counts: {},
  /** Answers when everything that should run and nobody hosts was taken up. */
  settle: {},
  /** Ends the supervisor when it hosts nothing. Result: `{ ending }`. */
  rest: {},
  /** Ends the supervisor; what it hosts runs on. */
  retire: {},
});
export type Request = ShapeType<typeof request>;

const event = variants('kind', {
  step: { title: text },
  /** What the person must know, and what goes on all the same. */
  warning: { text },
  /** A line the server wrote before it ended. */
  output: { line: text },
  /** Text for standard error, from a run that the supervisor carries out for a command. */
  told: { text },
  /** What the workload of such a run may do (`permissionCard`), told before it is saved. */
  card: { rows: listOf(members({ label: text, text, tone: oneOf('plain', 'caution') })) },
  /** From here on such a run is the start of a saved workload; `url` is what clients will connect to. Told again where that changes. */
  saved: { name: text, url: text },
});
/** What the supervisor tells the person who waits for a start. */
export type StartEvent = ShapeType<typeof event>;
/** The rows of a permission card, as a person is shown them. */
export type ShownCard = Extract<StartEvent, { readonly kind: 'card' }>['rows'];
export type Tell = (event: StartEvent) => void;
export const tellNobody: Tell = () => {};

const failure = members({
  code: text,
  message: text,
  hint: text,
  detail: (value): Readonly<Record<string, unknown>> => (isRecord(value) ? value : {}),
});
/** An error as it travels. */
type Failure = ShapeType<typeof failure>;

const readiness = variants('is', {
  /** `server`: how it calls itself, for people. `tools` is absent where it could not be asked for them. */
  answered: { server: optional(text), tools: optional(foundWeight) },
  /** The person did not want to know. */
  unchecked: {},
});
/** What a start found out about the server. */
export type Readiness = ShapeType<typeof readiness>;

const front = variants('is', {
  /** All workloads of the supervisor are served there, too; see `frontUrl`. */
  open: { port: wholeNumber() },
  /** Another program has its port: a line that names it, and the setting. */
  closed: { why: text },
});

/**
 * Where clients connect to; `readiness` is absent where nothing had to be started, `front` where there is to be no front
 * door.
 */
const endpoint = members({
  url: text,
  port: wholeNumber(),
  readiness: optional(readiness),
  front: optional(front),
  /** How hard its container is held, which may be less than what was tried. */
  hardening: optional(oneOf(...HARDENINGS)),
});
export type Endpoint = ShapeType<typeof endpoint>;

const toolCounts = listOf(
  members({ name: text, calls: wholeNumber(0), errors: wholeNumber(0), ms: wholeNumber(0) }),
);
/** What was counted of the tools of a workload since its proxy started; milliseconds of all calls together. */
export type ToolCounts = ShapeType<typeof toolCounts>;
const counts = members({ counts: recordOf(toolCounts) });
export type ShownCounts = Readonly<Record<string, ToolCounts>>;

/** One line of the supervisor after its greeting. */
export type Answer =
  | { readonly event: StartEvent }
  | { readonly error: Failure }
  | { readonly result: unknown };

/** The readers of lines fail with `supervisor/protocol`. */
export const readGreeting = (line: unknown): Greeting => greeting(line, () => fail());
export const readRequest = (line: unknown): Request => request(line, () => fail('the request is not known'));
/** The result of `start` and `run`. */
export const readEndpoint = (result: unknown): Endpoint => endpoint(result, () => fail());

/** The result of `counts`. */
export const readCounts = (result: unknown): ShownCounts => counts(result, () => fail()).counts;

export function readAnswer(line: unknown): Answer {
  if (!isRecord(line)) return fail();
  if ('result' in line) return { result: line['result'] };
  return 'event' in line
    ? { event: event(line['event'], () => fail()) }
    : { error: failure(line['error'], () => fail()) };
}

function fail(message?: string): never {
  throw new SkepError('supervisor/protocol', message === undefined ? {} : { message });
}

/** What is not a SkepError keeps its text to itself. */
export function toFailure(error: unknown): Failure {
  const named = nameFullDisk(error);
  const known = named instanceof SkepError ? named : new SkepError('internal/bug', { cause: error });
  return { code: known.code, message: known.message, hint: known.hint, detail: { ...known.detail } };
}

export function fromFailure({ code, message, hint, detail }: Failure): SkepError {
  const isCode = (one: string): one is Code => Object.hasOwn(CODES, one);
  return new SkepError(isCode(code) ? code : 'supervisor/protocol', { message, hint, detail });
}

type Shapes = Readonly<Record<string, Shape<unknown>>>;
type Variants<Key extends string, Cases extends Readonly<Record<string, Shapes>>> = {
  [Case in keyof Cases & string]: { readonly [One in Key]: Case } & MembersOf<Cases[Case]>;
}[keyof Cases & string];

/** One of several kinds of objects, which the member `key` tells apart. */
function variants<const Key extends string, const Cases extends Readonly<Record<string, Shapes>>>(
  key: Key,
  cases: Cases,
): Shape<Variants<Key, Cases>> {
  return (value, refuse) => {
    const [kind, shapes] =
      Object.entries(cases).find(([one]) => isRecord(value) && value[key] === one) ??
      refuse('is of no known kind');
    return { [key]: kind, ...members(shapes)(value, refuse) } as Variants<Key, Cases>;
  };
}

/** Longest line either side accepts, in UTF-16 code units: a run configuration (`MAX_RUN_CONFIG_BYTES`) and as much again. */
export const MAX_LINE_CHARS = 8 * 1024 * 1024;

export type Lines = AsyncGenerator<unknown, void, undefined>;

/** The JSON values of a socket's lines, until the other side ends. Fails with `supervisor/protocol` on anything else. */
export async function* readLines(socket: Socket, { destroyOnReturn = true } = {}): Lines {
  socket.setEncoding('utf8');
  let rest = '';
  for await (const chunk of socket.iterator({ destroyOnReturn })) {
    rest += String(chunk);
    for (let end = rest.indexOf('\n'); end !== -1; end = rest.indexOf('\n')) {
      yield parseLine(rest.slice(0, end));
      rest = rest.slice(end + 1);
    }
    if (rest.length > MAX_LINE_CHARS)
      throw new SkepError('supervisor/protocol', { message: 'a line is too long' });
  }
}

export function writeLine(socket: Socket, value: unknown): void {
  // The other side may have gone: its `close` event is what tells, not a failed write.
  if (socket.writable) socket.write(`${JSON.stringify(value)}\n`);
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (cause) {
    throw new SkepError('supervisor/protocol', { message: 'a line is not JSON', cause });
  }
}
