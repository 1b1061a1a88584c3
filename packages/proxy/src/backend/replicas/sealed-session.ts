import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { isAbility, type Ability } from '../../message/client-abilities.ts';
import { METHODS } from '../../message/methods.ts';
import { isVersion } from '../../message/protocol-version.ts';
import type { ServerSession } from '../port.ts';

/** A session of the server, whose bytes are relayed. */
export interface RelayedSession {
  readonly is: 'open';
  /** Whose it is; null where nobody signs in. */
  readonly principal: string | null;
  /** What the server calls it by now. */
  readonly name: string;
  /** The `initialize` that began it; undefined where that is too long to be kept. */
  readonly body: string | undefined;
}

/** A session of the proxy, which reads what passes. */
export interface OwnSession {
  readonly is: 'own';
  /** As of a relayed one. */
  readonly principal: string | null;
  /** The revision agreed with its client. */
  readonly version: string;
  /** What its client can be asked. */
  readonly abilities: readonly Ability[];
  /** What the proxy has with the server for it; null where the server has no sessions, as modern ones. */
  readonly server: ServerSession | null;
}

export type LiveSession = RelayedSession | OwnSession;

/** What every replica has to know of a session; `ended` for one that its client has ended. */
export type SharedSession = LiveSession | { readonly is: 'ended' };

/** What the server calls it; undefined where it does not. */
export function nameOf(session: LiveSession): string | undefined {
  return session.is === 'open' ? session.name : session.server?.name;
}

/** The same session under the name that the server has given it now. */
export function renamed(session: LiveSession, name: string): LiveSession {
  if (session.is === 'open') return { ...session, name };
  return session.server === null ? session : { ...session, server: { ...session.server, name } };
}

/** True where both are a session of the same kind and principal. */
export function isOfSame(session: SharedSession | undefined, known: LiveSession): session is LiveSession {
  return session !== undefined && session.is === known.is && session.principal === known.principal;
}

const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Another form of records needs another word here. */
const FORM = 'skep session 1';
/** What may stand in a header (MCP 2025-11-25, session management). */
const NAME = /^[\x21-\x7e]{1,4096}$/;

/**
 * The place of a session in a store, and the key that seals it. Both come of its id alone, which is in no store: who reads a store
 * cannot use the sessions in it, and who writes there cannot make one up for an id that they do not have (RFC 5869).
 */
export class SessionSeal {
  readonly place: string;
  readonly #key: Buffer;

  /** `server` tells sessions of different servers apart that have the same id. */
  constructor(id: string, server: string) {
    const derive = (what: string): Buffer =>
      Buffer.from(hkdfSync('sha256', id, server, `${FORM} ${what}`, 32));
    this.place = derive('place').toString('base64url');
    this.#key = derive('key');
  }

  seal(session: SharedSession): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#key, nonce, { authTagLength: TAG_BYTES });
    const sealed = [cipher.update(JSON.stringify(session), 'utf8'), cipher.final()];
    return Buffer.concat([nonce, cipher.getAuthTag(), ...sealed]).toString('base64url');
  }

  /** Undefined for what this seal did not make, or that no session could be. */
  open(text: string): SharedSession | undefined {
    const bytes = Buffer.from(text, 'base64url');
    if (bytes.length < NONCE_BYTES + TAG_BYTES) return undefined;
    const nonce = bytes.subarray(0, NONCE_BYTES);
    const decipher = createDecipheriv(CIPHER, this.#key, nonce, { authTagLength: TAG_BYTES });
    decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
    try {
      const opened = [decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()];
      return read(parsedJson(Buffer.concat(opened).toString('utf8')));
    } catch {
      return undefined;
    }
  }
}

function read(value: unknown): SharedSession | undefined {
  if (!isRecord(value)) return undefined;
  const { is, principal } = value;
  if (is === 'ended') return { is };
  if (principal !== null && typeof principal !== 'string') return undefined;
  if (is === 'open') return readRelayed(value, principal);
  return is === 'own' ? readOwn(value, principal) : undefined;
}

type Fields = Readonly<Record<string, unknown>>;

function readRelayed({ name, body }: Fields, principal: string | null): RelayedSession | undefined {
  if (!isName(name) || (body !== undefined && !begins(body))) return undefined;
  return { is: 'open', principal, name, body };
}

function readOwn({ version, abilities, server }: Fields, principal: string | null): OwnSession | undefined {
  if (!isVersion(version) || !Array.isArray(abilities) || !abilities.every(isAbility)) return undefined;
  const own = { is: 'own', principal, version, abilities } as const;
  if (server === null) return { ...own, server };
  if (!isRecord(server)) return undefined;
  const { name, version: spoken, body } = server;
  if ((name !== undefined && !isName(name)) || !isVersion(spoken) || !begins(body)) return undefined;
  return { ...own, server: { name, version: spoken, body } };
}

function isName(name: unknown): name is string {
  return typeof name === 'string' && NAME.test(name);
}

function begins(body: unknown): body is string {
  const message = typeof body === 'string' ? parsedJson(body) : undefined;
  return isRecord(message) && message['method'] === METHODS.initialize;
}
