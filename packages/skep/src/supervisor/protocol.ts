import type { Socket } from 'node:net';
import { CODES, type Code } from '@skep/core/errors/codes.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { z } from 'zod';

/**
 * What is spoken on the supervisor's socket: JSON lines in UTF-8. The supervisor greets; the client sends one request;
 * the supervisor answers with any number of events and one result or error; the client closes. The greeting and the
 * operation `retire` never change, so that any version can replace any other.
 */
export const greetingSchema = z.object({
  skep: z.literal('supervisor'),
  version: z.string(),
  pid: z.int(),
  started: z.string(),
  /** The directories it works on; see `whatIsKept`. */
  state: z.string(),
  data: z.string(),
});
export type Greeting = z.infer<typeof greetingSchema>;

const name = z.string();
export const requestSchema = z.discriminatedUnion('op', [
  /** Starts a saved workload. Result: endpoint. Closing the connection before the result undoes it. */
  z.object({ op: z.literal('start'), name }),
  /** Result: `{ stopped }`. */
  z.object({ op: z.literal('stop'), name, graceMs: z.number() }),
  z.object({ op: z.literal('remove'), name }),
  /** Answers when everything that should run and nobody hosts was taken up. */
  z.object({ op: z.literal('settle') }),
  /** Ends the supervisor when it hosts nothing. Result: `{ ending }`. */
  z.object({ op: z.literal('rest') }),
  /** Ends the supervisor; what it hosts runs on. */
  z.object({ op: z.literal('retire') }),
]);
export type Request = z.infer<typeof requestSchema>;

const eventSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('step'), title: z.string() }),
  z.object({ kind: z.literal('warning'), text: z.string() }),
  z.object({ kind: z.literal('output'), line: z.string() }),
]);

export const failureSchema = z.object({
  code: z.string(),
  message: z.string(),
  hint: z.string(),
  detail: z.record(z.string(), z.unknown()),
});

export const answerSchema = z.union([
  z.object({ event: eventSchema }),
  z.object({ error: failureSchema }),
  z.object({ result: z.unknown() }),
]);
export type Answer = z.infer<typeof answerSchema>;

/** An error as it travels; what is not a SkepError keeps its text to itself. */
export function toFailure(error: unknown): z.infer<typeof failureSchema> {
  const known = error instanceof SkepError ? error : new SkepError('internal/bug', { cause: error });
  return { code: known.code, message: known.message, hint: known.hint, detail: { ...known.detail } };
}

export function fromFailure(failure: z.infer<typeof failureSchema>): SkepError {
  const { message, hint, detail } = failure;
  return new SkepError(isCode(failure.code) ? failure.code : 'supervisor/protocol', {
    message,
    hint,
    detail,
  });
}

function isCode(code: string): code is Code {
  return Object.hasOwn(CODES, code);
}

/** Longest line either side accepts; requests and answers are small. */
const MAX_LINE_CHARS = 1024 * 1024;

/** The JSON values of a socket's lines, until the other side ends. Fails with `supervisor/protocol` on anything else. */
export async function* readLines(socket: Socket): AsyncGenerator<unknown, void, undefined> {
  socket.setEncoding('utf8');
  let rest = '';
  for await (const chunk of socket) {
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
