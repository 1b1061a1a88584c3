/** What a runtime may know about the machine and the user; built once in main.ts. */
export interface RuntimeEnvironment {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Home directory. */
  readonly home: string;
  readonly platform: NodeJS.Platform;
  /** Absolute path of the running Node binary. */
  readonly execPath: string;
  /** Directory for the sandbox's workloads; made when needed. */
  readonly dataDir: string;
  /** Directory for fetched package trees; made when needed. */
  readonly cacheDir: string;
  /** Whose builds these are on an engine that several share; see `ownerOf`. */
  readonly owner: string;
  /** A fresh token of at least 64 random bits in lower-case hex. */
  readonly randomId: () => string;
}
