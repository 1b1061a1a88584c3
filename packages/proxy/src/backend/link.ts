import type { Code } from '@skep/core/errors/codes.ts';
import type { Log } from '@skep/core/log/log.ts';
import type { Peer, PortState, ServerSession } from './port.ts';

/** What a link tells the mux that uses it. */
export interface LinkEvents {
  readonly log: Log;
  /** After this number come those of the link's own requests; 0 by default. */
  readonly lastId?: number;
  /**
   * One message of the server, or something that it wrote in the place of one; `about` is the id of the request on whose stream
   * it came, where there is such a stream.
   */
  onLine(line: string, about?: string): void;
  /** The link broke: no answer will come to anything written so far. */
  onBroken(): void;
  /** There is a link again, to the same server or to one in its place. */
  onAttachedAgain(): void;
  /** No answer will come to the request of that id; nothing where it has come. `said` tells it instead of the title of `code`. */
  onFailed(id: string, code: Code, said?: string): void;
  /** True while the request of that id is unanswered. */
  isWaiting(id: string): boolean;
}

/** The way to one server and back: a pipe, or a session over HTTP. */
export interface Link {
  readonly state: PortState;
  /** The first attempt; its failure is the caller's. */
  attach(): Promise<void>;
  /**
   * Sends one message; `id` is that of a request, `peer` who sends it. False when it cannot be taken: not attached, or too much
   * waits.
   */
  write(line: string, id?: string, peer?: Peer): boolean;
  /** What the server speaks; it is asked where that is not known. Absent where it is legacy. */
  era?(): Promise<'legacy' | 'modern'>;
  /** A client hears what no request asked for. Absent where the server needs no asking for that. */
  listen?(): void;
  /** Nobody hears that any more. Absent as `listen`. */
  deaf?(): void;
  /** What another link can go on with; undefined where the server has no sessions, or none yet. */
  session?(): ServerSession | undefined;
  /** See `BackendPort`. */
  restarted(): void;
  ended(): void;
  /** `elsewhere`: its session goes on over another link. */
  close(goesOn?: 'elsewhere'): void;
}

export type OpenLink = (events: LinkEvents) => Link;
