import type { Clock, Timer } from '@skep/core/time/clock.ts';
import { memberAt, withId, type Request } from '../../message/json-rpc.ts';
import { PROGRESS_TOKEN, type Flight } from './in-flight.ts';
import type { Listener, Peer } from '../port.ts';

/** A person may have to answer, so this is long; the call that waits for it does not run out meanwhile. */
const ANSWER_WITHIN_MS = 10 * 60_000;
/** A server that asks more than this at once is refused. */
const MAX_QUESTIONS = 1024;

/** A request of the server that one client holds. */
export interface Asked {
  /** The id that client sees, raw JSON text. */
  readonly id: string;
  /** The server's own id, raw JSON text. */
  readonly serverId: string;
  /** What the server wants its progress told under; undefined where it does not. */
  readonly progressToken: unknown;
  readonly peer: Peer;
  readonly channel: Pick<Listener, 'send'>;
  /** The call during which the server asked. */
  readonly flight: Flight | undefined;
  readonly timer: Timer;
}

/** Who is asked: a peer and the stream that reaches it. */
export type Target = Pick<Asked, 'peer' | 'channel' | 'flight'>;

export interface ServerRequestsOptions {
  readonly clock: Clock;
  /** `own`: clients see the server's own ids, of which no two are the same, as all are of one session with it. */
  readonly ids: 'fresh' | 'own';
  readonly onExpired: (asked: Asked) => void;
}

/** Requests from the server to clients (sampling, elicitation, roots), each held by exactly one client. */
export class ServerRequests {
  readonly #options: ServerRequestsOptions;
  readonly #open = new Map<string, Asked>();
  #last = 0;

  constructor(options: ServerRequestsOptions) {
    this.#options = options;
  }

  /** Hands `request` to `target`; false when too many are open, or one of that id. */
  ask(request: Request, target: Target): boolean {
    const { ids, clock, onExpired } = this.#options;
    const id = ids === 'own' ? request.id : String((this.#last += 1));
    if (this.#open.size >= MAX_QUESTIONS || this.#open.has(id)) return false;
    const timer = clock.after(ANSWER_WITHIN_MS, () => {
      const late = this.remove(id);
      if (late !== undefined) onExpired(late);
    });
    const progressToken = memberAt(request.value, PROGRESS_TOKEN);
    this.#open.set(id, { id, serverId: request.id, progressToken, ...target, timer });
    if (target.flight !== undefined) target.flight.holds += 1;
    target.channel.send(withId(request, id));
    return true;
  }

  /** The open request that `peer` answers by `id`; nobody else's answer counts. */
  heldBy(peer: Peer, id: string): Asked | undefined {
    const asked = this.#open.get(id);
    return asked?.peer === peer ? asked : undefined;
  }

  /** True where `peer` holds a request whose progress the server hears under `token`. */
  awaitsProgress(peer: Peer, token: unknown): boolean {
    if (token === undefined) return false;
    return [...this.#open.values()].some((asked) => asked.peer === peer && asked.progressToken === token);
  }

  /** The open request that the server knows as `serverId`. */
  withdrawn(serverId: string): Asked | undefined {
    for (const asked of this.#open.values()) {
      if (asked.serverId === serverId) return this.remove(asked.id);
    }
    return undefined;
  }

  /** Everything the departed peer still held. */
  leave(peer: Peer): readonly Asked[] {
    const held = [...this.#open.values()].filter((asked) => asked.peer === peer);
    for (const asked of held) this.remove(asked.id);
    return held;
  }

  clear(): void {
    for (const id of this.#open.keys()) this.remove(id);
  }

  /** The request was answered, or nobody will answer it. */
  remove(id: string): Asked | undefined {
    const asked = this.#open.get(id);
    if (asked === undefined) return undefined;
    this.#open.delete(id);
    asked.timer.cancel();
    if (asked.flight !== undefined) {
      asked.flight.holds -= 1;
      if (asked.flight.holds === 0) asked.flight.timer.restart();
    }
    return asked;
  }
}
