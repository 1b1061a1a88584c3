import { Agent, type AgentOptions, type ClientRequest, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** What Node and its agents do with each other, beyond what is documented; `agent-base` lives on the same. */
interface Answered extends Socket {
  /** The request that the connection carries, or has carried last. */
  readonly _httpMessage?: { readonly res?: IncomingMessage | null };
  /** Reads the answer to that; none before it is asked, and once it has come whole. */
  readonly parser?: unknown;
}
interface Unconnected extends ClientRequest {
  onSocket(socket: Socket): void;
}
interface Place {
  readonly host?: string | null | undefined;
  readonly port?: string | number | null | undefined;
}
interface Plain {
  addRequest(request: ClientRequest, place: Place): void;
  createConnection(place: Place, ...more: readonly unknown[]): Socket;
}
const plain = Agent.prototype as Agent & Plain;

/** A connection that is used again, and to where it leads. */
interface Kept {
  readonly socket: Socket;
  readonly idle: Kept[];
  isIdle: boolean;
}

/**
 * An agent whose idle connections are handed out without the books that Node keeps of them, which take as long as a quarter of
 * relaying a short call (decision 0463). What was used last is used first. A connection goes when it idles longer than the
 * `timeout`, or than its server allows (`Keep-Alive: timeout`, RFC 9112 §9.3), when it says anything that nobody has asked for,
 * and where `maxFreeSockets` idle already.
 */
export class KeptConnections extends Agent {
  readonly #kept = new WeakMap<Socket, Kept>();
  readonly #idle = new Map<string, Kept[]>();
  readonly #max: number;

  constructor(options: AgentOptions & { readonly maxFreeSockets: number; readonly timeout: number }) {
    super({ ...options, keepAlive: true });
    this.#max = options.maxFreeSockets;
    this.removeAllListeners('free');
    this.on('free', (socket: Answered, place: Place) => this.#keep(socket, place));
  }

  /** Called by Node for each request. */
  addRequest(request: Unconnected, place: Place): void {
    const idle = this.#idle.get(keyOf(place));
    for (let kept = idle?.pop(); kept !== undefined; kept = idle?.pop()) {
      kept.isIdle = false;
      if (kept.socket.destroyed || !kept.socket.writable) continue;
      kept.socket.ref();
      request.reusedSocket = true;
      request.onSocket(kept.socket);
      return;
    }
    plain.addRequest.call(this, request, place);
  }

  /** Called by Node for each connection. */
  override createConnection(place: Place, ...more: readonly unknown[]): Socket {
    const socket = plain.createConnection.call(this, place, ...more);
    this.#meet(socket, place);
    return socket;
  }

  /** Ends those that idle. */
  endIdle(): void {
    for (const idle of this.#idle.values()) for (const { socket } of idle.splice(0)) socket.destroy();
  }

  /** One whose request was left before it was answered is not used again: nobody knows what it will say. */
  #keep(socket: Answered, place: Place): void {
    const kept = this.#kept.get(socket) ?? this.#meet(socket, place);
    const isAnswered = socket._httpMessage?.res?.complete === true;
    const isWanted = isAnswered && socket.writable && kept.idle.length < this.#max;
    // Node's own looks at what the server allows, which no types say, and sets the timeout.
    if (!isWanted || !(this.keepSocketAlive(socket) as unknown)) {
      socket.destroy();
      return;
    }
    kept.isIdle = true;
    kept.idle.push(kept);
  }

  #meet(socket: Answered, place: Place): Kept {
    const key = keyOf(place);
    const idle = this.#idle.get(key) ?? [];
    this.#idle.set(key, idle);
    const kept: Kept = { socket, idle, isIdle: false };
    this.#kept.set(socket, kept);
    // An answer that nobody has asked for would be taken for that to the next request, which is somebody else's.
    socket.on('data', () => void ((socket.parser ?? undefined) === undefined && socket.destroy()));
    socket.on('timeout', () => void (kept.isIdle && socket.destroy()));
    // While it is used whoever uses it hears of it.
    socket.on('error', () => {});
    socket.on('close', () => {
      const at = idle.indexOf(kept);
      if (at !== -1) idle.splice(at, 1);
    });
    return kept;
  }
}

const keyOf = ({ host, port }: Place): string => `${host ?? ''}:${port ?? ''}`;
