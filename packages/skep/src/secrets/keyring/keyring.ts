/**
 * A place of the operating system that keeps small texts (of ASCII) for its user, each under an account of the service
 * `skep`. What fails is `secrets/keyring`.
 */
export interface Keyring {
  /** For people. */
  readonly name: string;
  /** What it keeps is still there after the machine was started again. */
  readonly lasts: boolean;
  readonly maxChars: number;
  get(account: string): Promise<string | undefined>;
  set(account: string, text: string): Promise<void>;
  /** A missing one is fine. */
  delete(account: string): Promise<void>;
}

export interface KeyringSurroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly platform: NodeJS.Platform;
  readonly uid: number | undefined;
}
