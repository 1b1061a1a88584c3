/** Milliseconds that a request may take to arrive, and its handler after that. */
export const DEFAULT_REQUEST_MS = 10_000;
