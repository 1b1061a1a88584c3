import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import { META, withEnvelope } from '../../message/envelope.ts';
import { memberAt, readMessage, requestOf, type Message } from '../../message/json-rpc.ts';
import { METHODS } from '../../message/methods.ts';
import { MODERN_VERSION } from '../../message/protocol-version.ts';
import type { Link, LinkEvents, OpenLink } from '../link.ts';
import type { Peer, PortState, ServerSession } from '../port.ts';
import { LegacySide } from './legacy-side.ts';
import { refusesLegacy } from './refusal.ts';

type Family = 'legacy' | 'modern';

/** A server that says nothing to a request which it does not know is a legacy one. */
const PROBE_WITHIN_MS = 5_000;
/** No id of the mux is a string. */
const PROBE_ID = '"skep-discover"';
const PROBE = withEnvelope(requestOf(PROBE_ID, METHODS.discover, {}), { [META.capabilities]: {} }).text;

export interface EraLinkOptions extends LinkEvents {
  readonly clock: Clock;
  readonly open: OpenLink;
  /** The version of Skep that a modern server is told. */
  readonly skepVersion: string;
}

/** A handshake under way. */
interface Opening {
  readonly line: string;
  readonly id: string;
  readonly over: PromiseWithResolvers<void>;
  /** The server took no handshake, and it is being found out why. */
  isRefused: boolean;
}

/**
 * A link to a server of either family of revisions. Which one it is comes out of the first handshake, or, where a modern client
 * comes first, of `server/discover`; it is remembered until the server was started anew (decision 0335).
 */
export class EraLink implements Link {
  readonly #options: EraLinkOptions;
  readonly #inner: Link;
  #family: Family | undefined;
  readonly #legacySide: LegacySide;
  #opening: Opening | undefined;
  #probe: PromiseWithResolvers<Family> | undefined;

  constructor(options: EraLinkOptions) {
    const { open, clock, skepVersion, lastId } = options;
    this.#options = options;
    this.#inner = open({
      ...options,
      onLine: (line, about) => this.#heard(line, about),
      onBroken: () => {
        this.#forget();
        options.onBroken();
      },
      onFailed: (id, code, said) => {
        if (id === PROBE_ID) this.#probe?.resolve('legacy');
        if (id === this.#opening?.id) {
          if (this.#opening.isRefused) return;
          this.#opened();
        }
        const known = this.#family === 'modern' ? this.#legacySide.failed(id) : id;
        if (known !== undefined) options.onFailed(known, code, said);
      },
      isWaiting: (id) => (id === PROBE_ID ? this.#probe !== undefined : options.isWaiting(id)),
    });
    const write: Link['write'] = (line, id, peer) => this.#inner.write(line, id, peer);
    this.#legacySide = new LegacySide({ events: options, clock, skepVersion, write, lastId });
  }

  get state(): PortState {
    return this.#inner.state;
  }

  attach(): Promise<void> {
    return this.#inner.attach();
  }

  write(line: string, id?: string, peer?: Peer): boolean {
    if (this.#family === 'modern') return this.#legacySide.write(line, peer);
    if (this.#family === undefined && id !== undefined && isInitialize(line))
      this.#opening = { id, line, over: Promise.withResolvers(), isRefused: false };
    return this.#inner.write(line, id, peer);
  }

  /** Never asks during a handshake: servers of old may take no other request then. */
  async era(): Promise<Family> {
    await this.#opening?.over.promise;
    return this.#family ?? this.#ask();
  }

  listen(): void {
    this.#inner.listen?.();
  }

  deaf(): void {
    this.#inner.deaf?.();
  }

  session(): ServerSession | undefined {
    return this.#family === 'legacy' ? this.#inner.session?.() : undefined;
  }

  restarted(): void {
    this.#forget();
    this.#inner.restarted();
  }

  ended(): void {
    this.#forget();
    this.#inner.ended();
  }

  close(goesOn?: 'elsewhere'): void {
    this.#forget();
    this.#inner.close(goesOn);
  }

  async #ask(): Promise<Family> {
    if (this.#probe !== undefined) return this.#probe.promise;
    const probe = Promise.withResolvers<Family>();
    this.#probe = probe;
    const late = this.#options.clock.after(PROBE_WITHIN_MS, () => probe.resolve('legacy'));
    if (!this.#inner.write(PROBE, PROBE_ID)) probe.reject(new SkepError('proxy/busy'));
    try {
      const family = await probe.promise;
      // That it is a legacy one is sure when it has shaken hands: until then it may have been asked too early.
      if (this.#probe === probe && family === 'modern') this.#family = family;
      return family;
    } finally {
      late.cancel();
      if (this.#probe === probe) this.#probe = undefined;
    }
  }

  #heard(line: string, about: string | undefined): void {
    const pass = (known?: string): void => this.#options.onLine(line, known);
    if (this.#family === 'modern') {
      if (!this.#legacySide.take(line)) pass(about && this.#legacySide.knownAs(about));
    } else if (this.#family === 'legacy' || !this.#isOwn(line, about)) pass(about);
  }

  /** True for the answer to what this link asked itself, and for a handshake that a modern server refuses. */
  #isOwn(line: string, about: string | undefined): boolean {
    const opening = this.#opening;
    if (this.#probe === undefined && opening === undefined) return false;
    const message = readMessage(line);
    if (typeof message === 'string' || message.kind !== 'response') return false;
    if (message.id === PROBE_ID) {
      this.#probe?.resolve(offersModern(message) ? 'modern' : 'legacy');
      return true;
    }
    if (message.id !== opening?.id) return false;
    if (refusesLegacy(message)) {
      opening.isRefused = true;
      void this.#beginAnew(opening, () => this.#options.onLine(line, about));
      return true;
    }
    if (!message.failed) this.#family = 'legacy';
    this.#opened();
    return false;
  }

  /** A server that refused a handshake may be a modern one; `refuse` where it is not. Never rejects. */
  async #beginAnew(opening: Opening, refuse: () => void): Promise<void> {
    const family = await this.#ask().catch(() => 'legacy' as const);
    if (this.#opening !== opening) return;
    this.#opened();
    if (family === 'legacy' || !this.#legacySide.write(opening.line)) refuse();
  }

  #opened(): void {
    this.#opening?.over.resolve();
    this.#opening = undefined;
  }

  #forget(): void {
    this.#opened();
    this.#probe?.reject(new SkepError('proxy/backend-lost'));
    this.#probe = undefined;
    this.#family = undefined;
    this.#legacySide.close();
  }
}

function isInitialize(line: string): boolean {
  // Most lines are not, and some are large.
  if (!line.includes(METHODS.initialize)) return false;
  const message = readMessage(line);
  return typeof message !== 'string' && message.kind === 'request' && message.method === METHODS.initialize;
}

function offersModern({ value }: Message): boolean {
  const versions = memberAt(value, ['result', 'supportedVersions']);
  return Array.isArray(versions) && versions.includes(MODERN_VERSION);
}
