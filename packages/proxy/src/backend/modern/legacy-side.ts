import { isRecord } from '@skep/core/json/is-record.ts';
import { cutMembers, findPath, rawAt, splice } from '@skep/core/json/scan.ts';
import type { Clock, Timer } from '@skep/core/time/clock.ts';
import { capabilitiesFor } from '../../message/client-abilities.ts';
import { META, SUBSCRIPTION_ID, withEnvelope, withMember } from '../../message/envelope.ts';
import {
  errorOf,
  findToken,
  memberAt,
  readMessage,
  requestOf,
  resultOf,
  withId,
  type Message,
  type Notification,
  type Request,
  type Response,
} from '../../message/json-rpc.ts';
import { LISTEN_FILTERS, METHODS, NAMED_PARAMETER } from '../../message/methods.ts';
import { NEWEST_LEGACY_VERSION } from '../../message/protocol-version.ts';
import type { LinkEvents } from '../link.ts';
import { isLevel } from '../mux/log-levels.ts';
import { SELF, type Peer } from '../port.ts';
import { requiredBy } from './modern-form.ts';

/** How often one call may be asked for something. */
const MAX_ROUNDS = 16;
/** Before a call is made again for which nothing was asked: the server was busy. */
const AGAIN_AFTER_MS = 500;
/** Before a stream that ended is asked for again. */
const LISTEN_AGAIN_MS = 5_000;
const REQUEST_ID = ['params', 'requestId'];
const RESULT_TYPE = new Set(['resultType']);
const TAG = new Set<string>([META.subscriptionId]);
const FAILED = -32603;
const NO_LEVEL = { code: -32602, message: 'no such log level' };
/** Of all addresses that are listened to: each change of them is one request with all. */
const MAX_URI_CHARACTERS = 1024 * 1024;

export interface LegacySideOptions {
  readonly events: Pick<LinkEvents, 'onLine'>;
  readonly clock: Clock;
  readonly skepVersion: string;
  /** See `LinkEvents`. */
  readonly lastId?: number | undefined;
  write(line: string, id?: string, peer?: Peer): boolean;
}

/** One call on its way: the server knows it under another id each time that it is made again. */
interface Sent {
  /** The id that the mux gave it. */
  readonly id: string;
  /** As the mux wrote it, where the server may ask for more; undefined where it may not. */
  readonly request: Request | undefined;
  readonly peer: Peer;
  /** What answers bring, by name, and what the next request repeats. */
  answers: Map<string, string>;
  open: number;
  rounds: number;
  /** Raw JSON text. */
  state: string | undefined;
  again: Timer | undefined;
}

/**
 * What a mux hears of a modern server as if that were a legacy one: a handshake, questions during calls, changes unasked
 * (MCP 2026-07-28; docs/behaviour/proxy.md#two-families). Messages that are modern already pass as they are.
 */
export class LegacySide {
  readonly #options: LegacySideOptions;
  /** By the id that the server knows. */
  readonly #sent = new Map<string, Sent>();
  /** What clients were asked, by the id that their answers have. */
  readonly #asked = new Map<string, { readonly sent: Sent; readonly name: string }>();
  readonly #uris = new Set<string>();
  #capabilities: unknown;
  #level: string | undefined;
  /** The id of the request that all changes come by. */
  #listening: string | undefined;
  #listenAgain: Timer | undefined;
  #last: number;

  constructor(options: LegacySideOptions) {
    this.#options = options;
    this.#last = options.lastId ?? 0;
  }

  /** A message of the mux. False when the server cannot take it now. */
  write(line: string, peer: Peer = SELF): boolean {
    const message = readMessage(line);
    if (typeof message === 'string') return false;
    if (message.kind === 'request') return this.#request(message, peer);
    if (message.kind === 'response') return this.#answered(message);
    if (message.method === METHODS.initialized) this.#listen();
    return message.method === METHODS.cancelled ? this.#cancel(message) : true;
  }

  /** A line of the server; true where the mux hears no more of it than it was told here. */
  take(line: string): boolean {
    const message = readMessage(line);
    if (typeof message === 'string') return false;
    if (message.kind === 'response') return this.#reply(message);
    // A modern server asks by results, and its clients could answer no request.
    return message.kind === 'request' || this.#heard(message);
  }

  /** No answer will come under that id; gives back the one that the mux knows, undefined where it knows none. */
  failed(id: string): string | undefined {
    if (id === this.#listening) this.#ended();
    const sent = this.#sent.get(id);
    // The stream of a call is over as well when it is to be made again.
    if (sent === undefined) return id.startsWith('"') || this.#sent.has(waitingAs(id)) ? undefined : id;
    this.#forget(sent);
    return sent.id;
  }

  /** The id by which the mux knows what the server knows as `id`. */
  knownAs(id: string): string {
    return this.#sent.get(id)?.id ?? id;
  }

  close(): void {
    for (const sent of this.#sent.values()) sent.again?.cancel();
    this.#listenAgain?.cancel();
    this.#sent.clear();
    this.#asked.clear();
    this.#uris.clear();
    this.#listening = undefined;
    this.#listenAgain = undefined;
    this.#capabilities = undefined;
    this.#level = undefined;
  }

  #request(request: Request, peer: Peer): boolean {
    const { id, method, text } = request;
    if (memberAt(request.value, ['params', '_meta', META.version]) !== undefined)
      return this.#options.write(text, id, peer);
    if (method === METHODS.initialize)
      return this.#write(requestOf(id, METHODS.discover, {}), peer, undefined);
    if (method === METHODS.setLogLevel) {
      const level = memberAt(request.value, ['params', 'level']);
      if (!isLevel(level)) return this.#say(errorOf(id, NO_LEVEL));
      this.#level = level;
      return this.#say(resultOf(id, '{}'));
    }
    const uri = memberAt(request.value, ['params', 'uri']);
    if (typeof uri === 'string' && (method === METHODS.subscribe || method === METHODS.unsubscribe)) {
      if (method === METHODS.unsubscribe) this.#uris.delete(uri);
      else if (this.#hasRoomFor(uri)) this.#uris.add(uri);
      else return false;
      this.#listen();
      return this.#say(resultOf(id, '{}'));
    }
    const sent: Sent = {
      id,
      request: NAMED_PARAMETER.has(method) ? request : undefined,
      peer,
      answers: new Map(),
      open: 0,
      rounds: 0,
      state: undefined,
      again: undefined,
    };
    return this.#write(request, peer, sent);
  }

  #write(request: Request, peer: Peer, sent: Sent | undefined): boolean {
    const level = this.#level === undefined ? {} : { [META.logLevel]: this.#level };
    const { text } = withEnvelope(request, {
      [META.capabilities]: capabilitiesFor(peer.abilities),
      [META.clientInfo]: { name: 'skep', version: this.#options.skepVersion },
      ...level,
    });
    const known = sent ?? { ...NOTHING_SENT, id: request.id, peer, answers: new Map() };
    this.#sent.set(request.id, known);
    if (this.#options.write(text, request.id, peer)) return true;
    this.#sent.delete(request.id);
    return false;
  }

  #reply(reply: Response): boolean {
    if (reply.id === this.#listening) {
      this.#ended();
      return true;
    }
    const sent = this.#sent.get(reply.id);
    if (sent === undefined) return reply.id.startsWith('"');
    if (memberAt(reply.value, ['result', 'resultType']) === 'input_required' && sent.request !== undefined) {
      this.#sent.delete(reply.id);
      this.#ask(sent, reply);
      return true;
    }
    this.#forget(sent);
    const own = withId(reply, sent.id);
    if (memberAt(reply.value, ['result', 'supportedVersions']) !== undefined) this.#say(this.#welcome(own));
    else this.#say(withoutType(own));
    return true;
  }

  /** The answer to `server/discover` as one to `initialize`. */
  #welcome({ id, value }: Response): Response {
    const result = memberAt(value, ['result']);
    const capabilities = memberAt(result, ['capabilities']);
    const instructions = memberAt(result, ['instructions']);
    const info = memberAt(result, ['_meta', META.serverInfo]) ?? memberAt(result, ['serverInfo']);
    this.#capabilities = capabilities;
    const logging = isRecord(memberAt(capabilities, ['logging'])) ? {} : undefined;
    const welcome = {
      protocolVersion: NEWEST_LEGACY_VERSION,
      capabilities: { ...(isRecord(capabilities) ? capabilities : {}), ...(logging && { logging }) },
      serverInfo: isRecord(info) ? info : { name: 'unknown', version: '0' },
      ...(typeof instructions === 'string' && { instructions }),
    };
    return resultOf(id, JSON.stringify(welcome));
  }

  #ask(sent: Sent, reply: Response): void {
    sent.rounds += 1;
    const required = requiredBy(reply);
    if (sent.rounds > MAX_ROUNDS || required === undefined) {
      this.#fail(sent, 'the server asked for what cannot be asked');
      return;
    }
    const { questions, state } = required;
    sent.state = state;
    sent.answers = new Map();
    sent.open = questions.size;
    if (questions.size === 0) {
      sent.again = this.#options.clock.after(AGAIN_AFTER_MS, () => this.#repeat(sent));
      this.#sent.set(waitingAs(sent.id), sent);
      return;
    }
    this.#sent.set(waitingAs(sent.id), sent);
    for (const [name, question] of questions) {
      const id = this.#nextId();
      this.#asked.set(id, { sent, name });
      this.#options.events.onLine(`{"jsonrpc":"2.0","id":${id},${question}}`, sent.id);
    }
  }

  /** An answer of a client, or of the mux in its place. */
  #answered(reply: Response): boolean {
    const asked = this.#asked.get(reply.id);
    if (asked === undefined) return true;
    const { sent, name } = asked;
    this.#asked.delete(reply.id);
    const span = findPath(reply.text, [reply.failed ? 'error' : 'result']);
    if (reply.failed || span === undefined) {
      this.#forget(sent);
      const raw = span === undefined ? undefined : rawAt(reply.text, span);
      this.#say(raw === undefined ? failure(sent.id, 'not answered') : errorAs(sent.id, raw));
      return true;
    }
    sent.answers.set(name, rawAt(reply.text, span));
    sent.open -= 1;
    if (sent.open === 0) this.#repeat(sent);
    return true;
  }

  /** Makes a call again, with what its server had asked for. */
  #repeat(sent: Sent): void {
    this.#sent.delete(waitingAs(sent.id));
    const { request, answers, state } = sent;
    if (request === undefined) return;
    const members = [...answers].map(([name, raw]) => `${JSON.stringify(name)}:${raw}`);
    const responses = members.length === 0 ? [] : [`"inputResponses":{${members.join(',')}}`];
    const added = [...responses, ...(state === undefined ? [] : [`"requestState":${state}`])];
    const again = withId(request, this.#nextId());
    const text = added.length === 0 ? again.text : withMember(again.text, ['params'], added.join(','));
    const read = readMessage(text);
    const isWritten =
      typeof read !== 'string' && read.kind === 'request' && this.#write(read, sent.peer, sent);
    if (!isWritten) this.#fail(sent, 'the server takes no more messages now');
  }

  #fail(sent: Sent, message: string): void {
    this.#forget(sent);
    this.#say(failure(sent.id, message));
  }

  #forget(sent: Sent): void {
    sent.again?.cancel();
    for (const [id, one] of this.#sent) if (one === sent) this.#sent.delete(id);
    for (const [id, { sent: one }] of this.#asked) if (one === sent) this.#asked.delete(id);
  }

  #cancel(message: Notification): boolean {
    const span = findToken(message, REQUEST_ID);
    const id = span && rawAt(message.text, span);
    const [now, sent] = [...this.#sent].find(([, one]) => one.id === id) ?? [];
    if (now === undefined || sent === undefined || span === undefined)
      return this.#options.write(message.text);
    this.#forget(sent);
    // One that waits has been answered, as far as the server knows.
    if (now === waitingAs(sent.id)) return true;
    return this.#options.write(splice(message.text, [{ span, text: now }]));
  }

  /** Listens to everything that the server has, for all its clients, and to the resources that they subscribed to. */
  #listen(): void {
    const before = this.#listening;
    const lists = [...LISTEN_FILTERS].filter(
      ([, { capability }]) => memberAt(this.#capabilities, [capability, 'listChanged']) === true,
    );
    const uris = this.#uris.size === 0 ? {} : { resourceSubscriptions: [...this.#uris] };
    const notifications = { ...Object.fromEntries(lists.map(([name]) => [name, true])), ...uris };
    let next: string | undefined;
    if (Object.keys(notifications).length > 0) {
      next = this.#nextId();
      const asking = withEnvelope(requestOf(next, METHODS.listen, { notifications }), {
        [META.capabilities]: {},
      });
      if (!this.#options.write(asking.text, next)) {
        this.#listenLater();
        return;
      }
    }
    this.#listening = next;
    this.#listenAgain?.cancel();
    this.#listenAgain = undefined;
    if (before === undefined) return;
    const over = {
      jsonrpc: '2.0',
      method: METHODS.cancelled,
      params: { requestId: JSON.parse(before) as string },
    };
    this.#options.write(JSON.stringify(over));
  }

  #ended(): void {
    this.#listening = undefined;
    this.#listenLater();
  }

  #listenLater(): void {
    this.#listenAgain ??= this.#options.clock.after(LISTEN_AGAIN_MS, () => {
      this.#listenAgain = undefined;
      this.#listen();
    });
  }

  #hasRoomFor(uri: string): boolean {
    const all = [...this.#uris, uri].reduce((sum, { length }) => sum + length, 0);
    return this.#uris.has(uri) || all <= MAX_URI_CHARACTERS;
  }

  #heard(message: Notification): boolean {
    const span = findToken(message, SUBSCRIPTION_ID);
    const id = span && rawAt(message.text, span);
    if (id === undefined || !id.startsWith('"')) return false;
    if (id !== this.#listening || message.method === METHODS.listening) return true;
    const meta = findPath(message.text, ['params', '_meta']);
    if (meta === undefined) return true;
    this.#options.events.onLine(cutMembers(message.text, meta.start, TAG));
    return true;
  }

  #say(message: Message): boolean {
    this.#options.events.onLine(message.text);
    return true;
  }

  /** No id of the mux is a string. */
  #nextId(): string {
    return `"skep-${(this.#last += 1)}"`;
  }
}

const NOTHING_SENT = { request: undefined, open: 0, rounds: 0, state: undefined, again: undefined };

/** A call that waits for its client is known by a name that no server says. */
function waitingAs(id: string): string {
  return `waiting ${id}`;
}

function withoutType(reply: Response): Response {
  const span = reply.failed ? undefined : findPath(reply.text, ['result']);
  if (span === undefined || memberAt(reply.value, ['result', 'resultType']) === undefined) return reply;
  return { ...reply, text: cutMembers(reply.text, span.start, RESULT_TYPE) };
}

function failure(id: string, message: string): Response {
  return errorOf(id, { code: FAILED, message });
}

function errorAs(id: string, raw: string): Response {
  return {
    ...errorOf(id, { code: FAILED, message: '' }),
    text: `{"jsonrpc":"2.0","id":${id},"error":${raw}}`,
  };
}
