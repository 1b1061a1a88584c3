import { SkepError } from '@skep/core/errors/skep-error.ts';
import { runTool, type ToolAnswer } from '../run-tool.ts';
import type { Keyring, KeyringSurroundings } from './keyring.ts';

/** Possessor and user may do everything: a later session of the user does not possess it. */
const RIGHTS = '0x3f3f0000';
const WAIT_MS = 5_000;

/** The kernel's own keyring of the user (keyrings(7)), through `keyctl`; gone when the machine is started again. */
export class KernelKeyring implements Keyring {
  readonly name = 'the keyring of the kernel';
  readonly lasts = false;
  /** As much as a key of type `user` holds. */
  readonly maxChars = 32_767;
  readonly #env: KeyringSurroundings['env'];

  constructor(env: KeyringSurroundings['env']) {
    this.#env = env;
  }

  async get(account: string): Promise<string | undefined> {
    const id = await this.#find(account);
    if (id === undefined) return undefined;
    const { status, out, err } = await this.#keyctl(['pipe', id]);
    if (status !== 0) throw refused(err);
    return out;
  }

  async set(account: string, text: string): Promise<void> {
    const { status, out, err } = await this.#keyctl(['padd', 'user', describe(account), '@u'], text);
    if (status !== 0) throw refused(err);
    await this.#keyctl(['setperm', out.trim(), RIGHTS]);
  }

  async delete(account: string): Promise<void> {
    const id = await this.#find(account);
    if (id !== undefined) await this.#keyctl(['unlink', id, '@u']);
  }

  async #find(account: string): Promise<string | undefined> {
    const { status, out } = await this.#keyctl(['search', '@u', 'user', describe(account)]);
    return status === 0 ? out.trim() : undefined;
  }

  async #keyctl(args: readonly string[], input = ''): Promise<ToolAnswer> {
    const answer = await runTool('keyctl', args, { env: this.#env, input, waitMs: WAIT_MS });
    if (answer) return answer;
    throw new SkepError('secrets/keyring', {
      message: 'keyctl, which speaks to the keyring of the kernel, is not installed',
    });
  }
}

const describe = (account: string): string => `skep:${account}`;

const refused = (why: string): SkepError =>
  new SkepError('secrets/keyring', { message: `the keyring of the kernel refuses: ${why}` });
