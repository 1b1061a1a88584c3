import type { Places } from '@skep/core/files/places.ts';
import type { AppConfig } from '../config/app-config.ts';
import type { Keyring, KeyringSurroundings } from './keyring/keyring.ts';

export type ProviderKind = NonNullable<AppConfig['secretsProvider']>;

export interface ListedSecret {
  readonly name: string;
  readonly description?: string;
}

/** A place where secrets are kept. Names and values are checked by whoever uses it. */
export interface SecretsProvider {
  readonly kind: ProviderKind;
  readonly get: (name: string) => Promise<string | undefined>;
  /** Absent where it cannot tell which there are. */
  readonly list?: () => Promise<readonly ListedSecret[]>;
  /**
   * Changes all secrets at once: what the function makes of them is kept whole, or not at all. Absent where secrets can
   * only be read.
   */
  readonly change?: (change: (secrets: Map<string, string>) => void) => Promise<void>;
}

/** What providers may know of the machine and the person; every command's context is one. */
export interface SecretsSurroundings extends KeyringSurroundings {
  readonly places: Places;
  readonly signal: AbortSignal;
  /** Asks the person; absent where nobody can be asked. */
  readonly ask?: (what: {
    readonly name: string;
    readonly description?: string;
    readonly required: boolean;
    readonly secret: boolean;
  }) => Promise<string>;
  /** The keyrings there are, the best first; absent where they are looked for on this machine. */
  readonly keyrings?: readonly Keyring[];
}
