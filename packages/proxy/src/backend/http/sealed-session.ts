import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { METHODS } from '../../message/methods.ts';

/** What every replica has to know of a session; `ended` for one that its client has ended. */
export type SharedSession =
  | { readonly is: 'ended' }
  | {
      readonly is: 'open';
      /** Whose it is; null where nobody signs in. */
      readonly principal: string | null;
      /** What the server calls it by now. */
      readonly name: string;
      /** The `initialize` that began it; undefined where that is too long to be kept. */
      readonly body: string | undefined;
    };

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
  const { is, principal, name, body } = value;
  if (is === 'ended') return { is };
  const isOpen = is === 'open' && (principal === null || typeof principal === 'string');
  if (!isOpen || typeof name !== 'string' || !NAME.test(name)) return undefined;
  if (body === undefined) return { is, principal, name, body };
  return typeof body === 'string' && begins(body) ? { is, principal, name, body } : undefined;
}

function begins(body: string): boolean {
  const message = parsedJson(body);
  return isRecord(message) && message['method'] === METHODS.initialize;
}
