import { memberAt, requestOf, resultOf, type Request } from '../../message/json-rpc.ts';
import { METHODS } from '../../message/methods.ts';
import { DEAF, SELF, told, type Peer, type Waiter } from '../port.ts';

/** RFC 5424 severities as MCP names them, most verbose first. */
const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];

/** True for a level that there is. */
export function isLevel(level: unknown): level is string {
  return typeof level === 'string' && LEVELS.includes(level);
}

/** True when a client that wants `wanted` and above should see a message of `level`. Unknown levels are shown. */
export function admits(wanted: string | undefined, level: unknown): boolean {
  if (wanted === undefined || !isLevel(level)) return true;
  return LEVELS.indexOf(level) >= LEVELS.indexOf(wanted);
}

/** The most verbose level that any of the peers asked for: what the one server behind them must be set to. */
function mostVerbose(peers: Iterable<Peer>): string | undefined {
  let lowest = LEVELS.length;
  for (const { logLevel } of peers) {
    if (logLevel !== undefined) lowest = Math.min(lowest, LEVELS.indexOf(logLevel));
  }
  return LEVELS[lowest];
}

/** Sets the one server behind all clients to the most verbose level that any of them wants. */
export class LogLevels {
  readonly #peers: ReadonlySet<Peer>;
  readonly #send: (peer: Peer, request: Request, waiter: Waiter) => void;
  /** The level that the server was last set to. */
  #level: string | undefined;

  constructor(peers: ReadonlySet<Peer>, send: (peer: Peer, request: Request, waiter: Waiter) => void) {
    this.#peers = peers;
    this.#send = send;
  }

  /** What `peer` asks for with `request`; the server hears of it where that changes what all want together. */
  set(peer: Peer, request: Request, waiter: Waiter): void {
    const wanted = memberAt(request.value, ['params', 'level']);
    if (!isLevel(wanted)) {
      this.#send(peer, request, waiter);
      return;
    }
    const before = peer.logLevel;
    peer.logLevel = wanted;
    const level = mostVerbose([...this.#peers, peer]) ?? wanted;
    const asking = level === wanted ? request : requestOf(request.id, METHODS.setLogLevel, { level });
    const learn = (succeeded: boolean): void => {
      if (succeeded) this.#level = level;
      else peer.logLevel = before;
    };
    if (level === this.#level) waiter.finish(resultOf(request.id, '{}'));
    else this.#send(peer, asking, told(waiter, learn));
  }

  /** Somebody has gone: the server may be quieter. */
  settle(): void {
    const level = mostVerbose(this.#peers);
    if (level === undefined || level === this.#level) return;
    const learn = (succeeded: boolean): void => {
      if (succeeded) this.#level = level;
    };
    this.#send(SELF, requestOf('0', METHODS.setLogLevel, { level }), told(DEAF, learn));
  }

  /** A server that was started anew was told nothing. */
  clear(): void {
    this.#level = undefined;
  }
}
