/** Files by which package managers sign in. */
export const LOGIN_FILES = ['npmrc', 'netrc'] as const;

export type LoginFile = (typeof LOGIN_FILES)[number];

/** What a person gives to what fetches packages, and no image, layer or history keeps. */
export interface BuildSecrets {
  readonly env: Readonly<Record<string, string>>;
  /** Content by kind. */
  readonly files: Readonly<Partial<Record<LoginFile, string>>>;
  /** What may be shown to nobody and be in nothing that is made. */
  readonly hidden: readonly string[];
}

/** Of a request: read when something is looked up or built. */
export interface BuildAccess {
  /** What an image is found again by: literal values, and the names of secrets. */
  readonly identity: string;
  /** Fails with `secrets/*`. */
  readonly reveal: () => Promise<BuildSecrets>;
}
