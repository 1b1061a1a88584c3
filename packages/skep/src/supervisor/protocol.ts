import { z } from 'zod';

/**
 * What is spoken on the supervisor's socket: JSON lines in UTF-8. The supervisor greets; the client sends one request;
 * the supervisor answers with any number of events and one result or error (answer.ts); the client closes. The greeting (greeting.ts)
 * and the operation `retire` never change, so that any version can replace any other.
 */
const name = z.string();
export const requestSchema = z.discriminatedUnion('op', [
  /** Starts a saved workload. Result: endpoint. Closing the connection before the result undoes it. */
  z.object({ op: z.literal('start'), name }),
  /**
   * Carries out `skep run` with these arguments, in this environment and working directory, where everything for it is
   * ready; fails with `supervisor/not-here`, and nothing made, where it is not (decision 0048). Events: `told`, then
   * `saved`, then those of a start. Result: endpoint.
   */
  z.object({
    op: z.literal('run'),
    argv: z.array(z.string()),
    env: z.record(z.string(), z.string()),
    cwd: z.string(),
  }),
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

export const failureSchema = z.object({
  code: z.string(),
  message: z.string(),
  hint: z.string(),
  detail: z.record(z.string(), z.unknown()),
});
