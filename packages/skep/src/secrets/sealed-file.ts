import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  randomBytes,
  scrypt,
  timingSafeEqual,
} from 'node:crypto';
import { promisify } from 'node:util';
import { SkepError } from '@skep/core/errors/skep-error.ts';

/**
 * The encrypted store's bytes (docs/behaviour/run.md#secrets): magic and version, the parameters of scrypt (RFC 7914)
 * and its salt, proof of the password, nonce; then what AES-256-GCM (NIST SP 800-38D) makes of the text, with all before
 * it as additional data, and its tag. Version 0 has neither magic nor salt: nonce, ciphertext, tag, under SHA-256 of the
 * password.
 */
const MAGIC = Buffer.from('SKEPSEC');
const VERSION = 1;
/** 32 MiB of memory, three times over, as OWASP advises for interactive sign-in. */
const COST = { log2N: 15, r: 8, p: 3 } as const;
/** What a file may ask for at most, in bytes: it may be anybody's. */
const MAX_COST_BYTES = 256 * 1024 * 1024;
const SALT = 16;
const PROOF = 16;
const NONCE = 12;
const TAG = 16;
const HEADER = MAGIC.length + 4 + SALT + PROOF + NONCE;

export const MAX_TEXT_BYTES = 32 * 1024 * 1024;
export const MAX_FILE_BYTES = MAX_TEXT_BYTES + HEADER + TAG;

/** What a password becomes for one salt. */
interface Keys {
  readonly prefix: Buffer;
  readonly key: Buffer;
  readonly proof: Buffer;
}

/** Turns texts into bytes that say nothing without the password, and back. Derives its keys once for each salt. */
export class Seal {
  readonly #password: string;
  readonly #known = new Map<string, Promise<Keys>>();

  constructor(password: string) {
    this.#password = password;
  }

  /** `before`: the sealed bytes that these replace. */
  async close(text: Buffer, before?: Buffer): Promise<Buffer> {
    const isCurrent =
      before !== undefined && before.subarray(0, prefixLength).subarray(0, fixed.length).equals(fixed);
    const prefix = isCurrent ? before.subarray(0, prefixLength) : Buffer.concat([fixed, randomBytes(SALT)]);
    const { key, proof } = await this.#keys(prefix);
    const nonce = randomBytes(NONCE);
    const header = Buffer.concat([prefix, proof, nonce]);
    const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(header);
    return Buffer.concat([header, cipher.update(text), cipher.final(), cipher.getAuthTag()]);
  }

  /** Fails with `secrets/wrong-password`, or with `secrets/damaged`. */
  async open(sealed: Buffer, file: string): Promise<Buffer> {
    if (!sealed.subarray(0, MAGIC.length).equals(MAGIC)) return openOld(sealed, this.#password, file);
    if (sealed[MAGIC.length] !== VERSION) {
      throw new SkepError('secrets/damaged', {
        message: `"${file}" was written by a later release`,
        hint: 'use that release, or remove the file; the secrets in it are lost then',
      });
    }
    if (sealed.length < HEADER + TAG) throw damaged(file);
    const { key, proof } = await this.#keys(sealed.subarray(0, prefixLength)).catch((cause: unknown) => {
      throw damaged(file, cause);
    });
    const given = sealed.subarray(prefixLength, prefixLength + PROOF);
    if (!timingSafeEqual(given, proof)) throw wrongPassword(file);
    const header = sealed.subarray(0, HEADER);
    const nonce = sealed.subarray(HEADER - NONCE, HEADER);
    const decipher = createDecipheriv('aes-256-gcm', key, nonce)
      .setAAD(header)
      .setAuthTag(sealed.subarray(-TAG));
    try {
      return Buffer.concat([decipher.update(sealed.subarray(HEADER, -TAG)), decipher.final()]);
    } catch (cause) {
      throw damaged(file, cause);
    }
  }

  #keys(prefix: Buffer): Promise<Keys> {
    const id = prefix.toString('hex');
    const known = this.#known.get(id) ?? derive(this.#password, prefix);
    this.#known.set(id, known);
    return known;
  }
}

const fixed = Buffer.concat([MAGIC, Buffer.of(VERSION, COST.log2N, COST.r, COST.p)]);
const prefixLength = fixed.length + SALT;

const stretch = promisify<string, Buffer, number, object, Buffer>(scrypt);

async function derive(password: string, prefix: Buffer): Promise<Keys> {
  const [log2N = 0, r = 0, p = 0] = prefix.subarray(MAGIC.length + 1, fixed.length);
  const memory = 128 * 2 ** log2N * r;
  if (log2N < 10 || r === 0 || p === 0 || memory * p > MAX_COST_BYTES)
    throw new RangeError('scrypt parameters');
  const options = { N: 2 ** log2N, r, p, maxmem: memory + 1024 * 1024 };
  const both = await stretch(password.normalize('NFC'), prefix.subarray(fixed.length), 64, options);
  const proof = createHmac('sha256', both.subarray(32)).update(prefix).digest().subarray(0, PROOF);
  return { prefix, key: both.subarray(0, 32), proof };
}

function openOld(sealed: Buffer, password: string, file: string): Buffer {
  if (sealed.length < NONCE + TAG) throw damaged(file);
  const key = createHash('sha256').update(password).digest();
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, NONCE)).setAuthTag(
    sealed.subarray(-TAG),
  );
  try {
    return Buffer.concat([decipher.update(sealed.subarray(NONCE, -TAG)), decipher.final()]);
  } catch {
    throw wrongPassword(file);
  }
}

const wrongPassword = (file: string): SkepError =>
  new SkepError('secrets/wrong-password', {
    message: `the password does not open the secrets in "${file}"`,
  });

const damaged = (file: string, cause?: unknown): SkepError =>
  new SkepError('secrets/damaged', {
    message: `"${file}" is damaged, or somebody has changed it`,
    cause,
  });
