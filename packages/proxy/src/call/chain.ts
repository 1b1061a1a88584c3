import type { Call } from './call.ts';

/** One step: does its one check, then calls `next`, or answers and does not. */
export type Step = (call: Call, next: () => Promise<void>) => Promise<void>;

/** What steps hand on to each other. `head` is there from the start: method, path and headers. */
export type Facet = 'head' | 'body' | 'identity' | 'message' | 'credentials' | 'replies' | 'response';

interface Row {
  readonly name: string;
  /** What must have been written by an earlier row. */
  readonly reads: readonly Facet[];
  readonly writes: readonly Facet[];
  /** Hears how calls are answered, and changes nothing of it (decision 0345). */
  readonly hears?: true;
}

/** A row with its step. */
export interface Link extends Row {
  readonly run: Step;
}

/**
 * Every step that a chain can have, outermost first (docs/behaviour/proxy.md#the-chain). The order is the security of
 * the proxy: audit sees refusals, auth comes before any look into the body, renaming before everything that judges a
 * tool name, mutation before validation before authorization, credentials last. A row whose step is absent drops out;
 * nothing else may move.
 */
export const CHAIN = [
  { name: 'recovery', reads: [], writes: ['response'] },
  { name: 'origin', reads: ['head'], writes: ['response'] },
  { name: 'body-limit', reads: ['head'], writes: ['body'] },
  { name: 'audit', reads: ['head'], writes: [], hears: true },
  { name: 'auth', reads: ['head'], writes: ['identity'] },
  { name: 'client-token', reads: ['identity'], writes: ['credentials'] },
  { name: 'tool-filter', reads: ['body'], writes: ['replies'] },
  { name: 'tool-call-filter', reads: ['body'], writes: ['body'] },
  { name: 'mcp-parser', reads: ['head', 'body'], writes: ['message'] },
  { name: 'telemetry', reads: ['message', 'identity'], writes: [], hears: true },
  { name: 'rate-limit', reads: ['message', 'identity'], writes: ['response'] },
  { name: 'mutating-webhook', reads: ['message', 'identity'], writes: ['message'] },
  { name: 'validating-webhook', reads: ['message', 'identity'], writes: ['response'] },
  { name: 'authorization', reads: ['message', 'identity'], writes: ['message', 'replies'] },
  { name: 'outgoing-token', reads: ['identity'], writes: ['credentials'] },
  { name: 'transport', reads: ['body', 'identity', 'message'], writes: ['response'] },
] as const satisfies readonly Row[];

type StepName = (typeof CHAIN)[number]['name'];
type Always = 'recovery' | 'origin' | 'body-limit' | 'auth' | 'mcp-parser' | 'transport';

/** The steps of one chain: some are always there, the others come with their settings. */
export type Steps = Readonly<Record<Always, Step> & Partial<Record<StepName, Step>>>;

/** Those that come with their settings. */
export type OptionalSteps = Omit<Steps, Always>;

/**
 * True when one of the steps changes messages on their way: then a backend has to speak messages. So it does for a step that
 * hears answers where these are no answers to the requests (HTTP with SSE).
 */
export function looksInside(steps: OptionalSteps, answers: 'in-place' | 'elsewhere'): boolean {
  const given: Partial<Record<StepName, Step>> = steps;
  const inside: readonly Facet[] = ['body', 'message', 'replies'];
  const rows: readonly Row[] = CHAIN.filter(({ name }) => given[name]);
  return rows.some(
    ({ writes, hears }) =>
      (hears && answers === 'elsewhere') || writes.some((facet) => inside.includes(facet)),
  );
}

/** The rows of `CHAIN` whose step is given. */
export function chain(steps: Steps): readonly Link[] {
  const given: Partial<Record<StepName, Step>> = steps;
  return CHAIN.flatMap((row) => {
    const run = given[row.name];
    return run === undefined ? [] : [{ ...row, run }];
  });
}

/** One function out of the rows, nested once, at start. */
export function compose(links: readonly Pick<Link, 'run'>[]): (call: Call) => Promise<void> {
  const end = (): Promise<void> => Promise.resolve();
  return links.reduceRight<(call: Call) => Promise<void>>(
    (next, { run }) =>
      (call) =>
        run(call, () => next(call)),
    end,
  );
}
