import type { Code } from '@skep/core/errors/codes.ts';
import { CARRIED_CAPABILITIES } from '../../message/client-abilities.ts';
import { memberAt, requestOf, resultOf, withId, type Request } from '../../message/json-rpc.ts';
import { METHODS } from '../../message/methods.ts';
import { isOlder, NEWEST_LEGACY_VERSION } from '../../message/protocol-version.ts';
import { findPath, rawAt, splice } from '@skep/core/json/scan.ts';
import type { Newcomer, Waiter } from '../port.ts';

/** Sends a request of the proxy's own to the server. */
type Send = (request: Request, waiter: Waiter) => void;

/** What a handshake ended in. */
interface Agreed {
  /** Raw JSON text. */
  readonly result: string;
  readonly version: string;
}

const FALLBACK_VERSION = '2025-03-26';
/** Newcomers that wait at the same time. */
const MAX_WAITING = 1024;
/** Characters of a result, which every client gets and which is kept as long as the server runs. */
const MAX_RESULT_CHARACTERS = 1024 * 1024;
const PROTOCOL_VERSION = ['protocolVersion'];

/**
 * One process performs one handshake, and it is the proxy's own: in the newest revision, with every capability that can
 * be carried to a client, whoever comes first. Clients get its result under their own id, in the revision they asked
 * for (docs/behaviour/proxy.md#the-handshake); what a client did not declare it is never asked (`refusalOf`). A failed
 * handshake is not kept.
 */
export class Handshake {
  readonly #send: Send;
  readonly #skepVersion: string;
  /** Who waits for the handshake under way. */
  #waiting: Set<Newcomer> | undefined;
  #agreed: Agreed | undefined;
  #announced = false;
  /** Nobody but the proxy has announced itself. */
  #alone = false;
  /** The server refused the newest revision: the next client's is asked for. */
  #refused = false;

  constructor(send: Send, skepVersion: string) {
    this.#send = send;
    this.#skepVersion = skepVersion;
  }

  /** Joins the handshake, which the first newcomer begins. */
  join(newcomer: Newcomer): void {
    if (this.#agreed !== undefined) welcome(newcomer, this.#agreed);
    else if (this.#waiting === undefined) {
      this.#begin(new Set([newcomer]), this.#refused ? newcomer.wanted : undefined);
    } else if (this.#waiting.size < MAX_WAITING) this.#waiting.add(newcomer);
    else newcomer.fail('proxy/busy');
  }

  /** The newcomer has gone; the handshake goes on, for the next one. */
  leave(newcomer: Newcomer): void {
    this.#waiting?.delete(newcomer);
  }

  /** The server hears `notifications/initialized` once after a handshake. False when `write` could not tell it. */
  announce(write: () => boolean): boolean {
    this.#alone = false;
    if (this.#agreed === undefined || this.#announced) return true;
    this.#announced = write();
    return this.#announced;
  }

  /** As `announce`, for a request of the proxy's own, where no client has announced itself. */
  announceAlone(write: () => boolean): void {
    if (this.#agreed === undefined || this.#announced) return;
    this.#announced = write();
    this.#alone = this.#announced;
  }

  /** The server asked what nobody could answer: while no client was there, the first one's announcement has it ask again. */
  askedInVain(): void {
    if (this.#alone) this.#announced = false;
  }

  /** Forgets the handshake; the next newcomer begins another. */
  reset(): void {
    this.#waiting = undefined;
    this.#agreed = undefined;
    this.#announced = false;
    this.#alone = false;
    this.#refused = false;
  }

  #begin(waiting: Set<Newcomer>, version?: string): void {
    this.#waiting = waiting;
    this.#send(
      requestIn(version ?? NEWEST_LEGACY_VERSION, this.#skepVersion),
      this.#waiter(waiting, version),
    );
  }

  #waiter(waiting: Set<Newcomer>, asked: string | undefined): Waiter {
    const isCurrent = (): boolean => this.#waiting === waiting;
    const fail = (code: Code, said?: string): void => {
      if (isCurrent()) this.reset();
      for (const newcomer of waiting) newcomer.fail(code, said);
    };
    return {
      carries: false,
      send() {},
      finish: (reply) => {
        if (reply.text.length > MAX_RESULT_CHARACTERS) {
          fail('proxy/bad-gateway');
          return;
        }
        const span = reply.failed ? undefined : findPath(reply.text, ['result']);
        if (span === undefined) {
          const other = asked === undefined ? older(waiting) : undefined;
          if (isCurrent() && other !== undefined) {
            this.#begin(waiting, other);
            return;
          }
          if (isCurrent()) this.reset();
          this.#refused = true;
          for (const newcomer of waiting) newcomer.refuse(withId(reply, newcomer.id));
          return;
        }
        const version = memberAt(reply.value, ['result', ...PROTOCOL_VERSION]);
        const agreed = {
          result: rawAt(reply.text, span),
          version: typeof version === 'string' ? version : FALLBACK_VERSION,
        };
        if (isCurrent()) {
          this.#waiting = undefined;
          this.#agreed = agreed;
        }
        for (const newcomer of waiting) welcome(newcomer, agreed);
      },
      fail,
    };
  }
}

/** What the proxy asks the server. */
function requestIn(protocolVersion: string, skepVersion: string): Request {
  return requestOf('0', METHODS.initialize, {
    protocolVersion,
    capabilities: CARRIED_CAPABILITIES,
    clientInfo: { name: 'skep', version: skepVersion },
  });
}

/** What a client wants that the server may know where it does not know the newest revision. */
function older(waiting: Iterable<Newcomer>): string | undefined {
  for (const { wanted } of waiting)
    if (wanted !== undefined && wanted !== NEWEST_LEGACY_VERSION) return wanted;
  return undefined;
}

/** A client that asks for an older revision we know gets it; one that asks for a newer gets what was agreed. */
function welcome(newcomer: Newcomer, { result, version }: Agreed): void {
  const { id, wanted } = newcomer;
  const span = findPath(result, PROTOCOL_VERSION);
  if (wanted === undefined || !isOlder(wanted, version) || span === undefined) {
    newcomer.welcome(resultOf(id, result), version);
    return;
  }
  const own = splice(result, [{ span, text: JSON.stringify(wanted) }]);
  newcomer.welcome(resultOf(id, own), wanted);
}
