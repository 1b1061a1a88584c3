/** What the supervisor tells the person who waits for a start. */
export type StartEvent =
  | { readonly kind: 'step'; readonly title: string }
  /** What the person must know, and what goes on all the same. */
  | { readonly kind: 'warning'; readonly text: string }
  /** A line the server wrote before it ended. */
  | { readonly kind: 'output'; readonly line: string };

export type Tell = (event: StartEvent) => void;

export const tellNobody: Tell = () => {};
