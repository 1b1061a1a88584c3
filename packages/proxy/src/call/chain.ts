import type { Call } from './call.ts';

/** One step: does its one check, then calls `next`, or answers and does not. */
export type Step = (call: Call, next: () => Promise<void>) => Promise<void>;

/** What steps hand on to each other. `head` is there from the start: method, path and headers. */
export type Facet = 'head' | 'body' | 'identity' | 'message' | 'credentials' | 'replies' | 'response';

export interface Link {
  readonly name: string;
  /** What must have been written by an earlier row. */
  readonly reads: readonly Facet[];
  readonly writes: readonly Facet[];
  readonly run: Step;
}

/** Every step a chain can have. Without a `?` it is always there; those with one come with their settings. */
export interface Steps {
  readonly recovery: Step;
  readonly origin: Step;
  readonly bodyLimit: Step;
  readonly audit?: Step | undefined;
  readonly auth: Step;
  readonly clientToken?: Step | undefined;
  readonly toolFilter?: Step | undefined;
  readonly toolCallFilter?: Step | undefined;
  readonly mcpParser: Step;
  readonly telemetry?: Step | undefined;
  readonly rateLimit?: Step | undefined;
  readonly mutatingWebhook?: Step | undefined;
  readonly validatingWebhook?: Step | undefined;
  readonly authorization?: Step | undefined;
  readonly headerForward?: Step | undefined;
  readonly outgoingToken?: Step | undefined;
  readonly transport: Step;
}

interface Row extends Omit<Link, 'run'> {
  readonly run: Step | undefined;
}

function link(name: string, row: Omit<Row, 'name'>): Row {
  return { name, ...row };
}

/**
 * The chain, outermost first (docs/behaviour/proxy.md#the-chain). The order is the security of the proxy: audit sees
 * refusals, auth comes before any look into the body, renaming before everything that judges a tool name, mutation
 * before validation before authorization, credentials last. A row whose step is absent drops out; nothing else may
 * move.
 */
export function chain(steps: Steps): readonly Link[] {
  const rows = [
    link('recovery', { reads: [], writes: ['response'], run: steps.recovery }),
    link('origin', { reads: ['head'], writes: ['response'], run: steps.origin }),
    link('body-limit', { reads: ['head'], writes: ['body'], run: steps.bodyLimit }),
    link('audit', { reads: ['head', 'body'], writes: ['replies'], run: steps.audit }),
    link('auth', { reads: ['head'], writes: ['identity'], run: steps.auth }),
    link('client-token', { reads: ['identity'], writes: ['credentials'], run: steps.clientToken }),
    link('tool-filter', { reads: ['body'], writes: ['replies'], run: steps.toolFilter }),
    link('tool-call-filter', { reads: ['body'], writes: ['body'], run: steps.toolCallFilter }),
    link('mcp-parser', { reads: ['head', 'body'], writes: ['message'], run: steps.mcpParser }),
    link('telemetry', { reads: ['message', 'identity'], writes: ['replies'], run: steps.telemetry }),
    link('rate-limit', { reads: ['message', 'identity'], writes: ['response'], run: steps.rateLimit }),
    link('mutating-webhook', {
      reads: ['message', 'identity'],
      writes: ['message'],
      run: steps.mutatingWebhook,
    }),
    link('validating-webhook', {
      reads: ['message', 'identity'],
      writes: ['response'],
      run: steps.validatingWebhook,
    }),
    link('authorization', { reads: ['message', 'identity'], writes: ['replies'], run: steps.authorization }),
    link('header-forward', { reads: ['head'], writes: ['head'], run: steps.headerForward }),
    link('outgoing-token', { reads: ['identity'], writes: ['credentials'], run: steps.outgoingToken }),
    link('transport', { reads: ['body', 'identity', 'message'], writes: ['response'], run: steps.transport }),
  ];
  return rows.filter((row): row is Link => row.run !== undefined);
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
