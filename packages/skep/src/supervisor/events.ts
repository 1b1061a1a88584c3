/** What the supervisor tells the person who waits for a start. */
export type StartEvent =
  | { readonly kind: 'step'; readonly title: string }
  /** What the person must know, and what goes on all the same. */
  | { readonly kind: 'warning'; readonly text: string }
  /** A line the server wrote before it ended. */
  | { readonly kind: 'output'; readonly line: string };

export type Tell = (event: StartEvent) => void;

/** What it tells a command for which it carries out a whole run, before it starts what was saved. */
export type RunEvent =
  /** Text for standard error. */
  | { readonly kind: 'told'; readonly text: string }
  /** From here on the run is the start of a saved workload. */
  | { readonly kind: 'saved'; readonly name: string };

export const tellNobody: Tell = () => {};
