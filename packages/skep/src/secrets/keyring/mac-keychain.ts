import { SkepError } from '@skep/core/errors/skep-error.ts';
import { runTool } from '../run-tool.ts';
import type { Keyring, KeyringSurroundings } from './keyring.ts';

const PROGRAM = '/usr/bin/security';
/** errSecItemNotFound, as `security` ends with it. */
const NOT_FOUND = 44;

/** The login keychain of macOS, through `security`. What is stored is told to it by standard input. */
export class MacKeychain implements Keyring {
  readonly name = 'the keychain';
  readonly lasts = true;
  /** `security -i` reads lines of 4096 bytes, and takes values as hexadecimal digits. */
  readonly maxChars = 1_400;
  readonly #env: KeyringSurroundings['env'];

  constructor(env: KeyringSurroundings['env']) {
    this.#env = env;
  }

  async get(account: string): Promise<string | undefined> {
    const answer = await this.#security(['find-generic-password', '-s', 'skep', '-a', account, '-w']);
    if (answer.status === NOT_FOUND) return undefined;
    if (answer.status !== 0) throw refused(answer.err);
    return answer.out.trimEnd();
  }

  async set(account: string, text: string): Promise<void> {
    const quoted = `"${account.replaceAll(/["\\]/g, '\\$&')}"`;
    const hex = Buffer.from(text, 'utf8').toString('hex');
    const line = `add-generic-password -U -s skep -a ${quoted} -X ${hex}\n`;
    const { status, err } = await this.#security(['-i'], line);
    // In this mode it ends with 0 whatever came of it.
    if (status !== 0 || (await this.get(account)) !== text) throw refused(err);
  }

  async delete(account: string): Promise<void> {
    const { status, err } = await this.#security(['delete-generic-password', '-s', 'skep', '-a', account]);
    if (status !== 0 && status !== NOT_FOUND) throw refused(err);
  }

  async #security(args: readonly string[], input = '') {
    const answer = await runTool(PROGRAM, args, { env: this.#env, input });
    return answer ?? { status: 1, out: '', err: `${PROGRAM} is missing` };
  }
}

const refused = (why: string): SkepError =>
  new SkepError('secrets/keyring', { message: `the keychain refuses: ${why}` });
