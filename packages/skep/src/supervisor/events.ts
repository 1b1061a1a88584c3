/** What the supervisor tells the person who waits for a start. */
export type StartEvent =
  | { readonly kind: 'step'; readonly title: string }
  /** What the person must know, and what goes on all the same. */
  | { readonly kind: 'warning'; readonly text: string }
  /** A line the server wrote before it ended. */
  | { readonly kind: 'output'; readonly line: string }
  /** Text for standard error, from a run that it carries out for a command. */
  | { readonly kind: 'told'; readonly text: string }
  /** From here on such a run is the start of a saved workload; `url` is what clients will connect to. */
  | { readonly kind: 'saved'; readonly name: string; readonly url: string };

export type Tell = (event: StartEvent) => void;

export const tellNobody: Tell = () => {};
