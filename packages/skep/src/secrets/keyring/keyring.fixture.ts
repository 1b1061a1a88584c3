import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Keyring } from './keyring.ts';

/** A keyring in memory. */
export class MemoryKeyring implements Keyring {
  readonly name = 'the test keyring';
  readonly lasts: boolean;
  readonly maxChars: number;
  readonly held = new Map<string, string>();
  isLocked = false;

  constructor({ lasts = true, maxChars = 1000 } = {}) {
    this.lasts = lasts;
    this.maxChars = maxChars;
  }

  async get(account: string): Promise<string | undefined> {
    this.#unlocked();
    return this.held.get(account);
  }

  async set(account: string, text: string): Promise<void> {
    this.#unlocked();
    this.held.set(account, text);
  }

  async delete(account: string): Promise<void> {
    this.#unlocked();
    this.held.delete(account);
  }

  #unlocked(): void {
    if (this.isLocked) throw new SkepError('secrets/keyring', { message: 'the test keyring is locked' });
  }
}
