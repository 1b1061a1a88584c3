import { oldestOfMost } from '../backend/modern/give-way.ts';

/** A session that may have to give way to a new one. */
interface Owned {
  readonly principal: string;
}

interface Use<S> {
  /** Nobody listens and nobody waits for an answer. */
  readonly isIdle: (session: S) => boolean;
  readonly lastSeen: (session: S) => number;
}

/**
 * The session that ends for one more of `principal` where there are as many as there may be: the longest idle one of whoever has
 * most, so that nobody drives out the sessions of others. One in use gives way to somebody else's alone; undefined where none does.
 */
export function sessionToEnd<S extends Owned>(
  sessions: Iterable<S>,
  principal: string,
  { isIdle, lastSeen }: Use<S>,
): S | undefined {
  const all = [...sessions];
  // Whoever comes has one more with it.
  const most = oldestOfMost<Owned>([{ principal }, ...all], (one) => one.principal)?.principal;
  let found: S | undefined;
  for (const session of all) {
    if (session.principal !== most || (most === principal && !isIdle(session))) continue;
    const isBetter = (before: S): boolean =>
      isIdle(before) === isIdle(session) ? lastSeen(session) < lastSeen(before) : isIdle(session);
    if (found === undefined || isBetter(found)) found = session;
  }
  return found;
}
