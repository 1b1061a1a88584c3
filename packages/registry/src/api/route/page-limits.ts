/** How many items one page of a list has. */
export interface PageSize {
  /** When the caller does not say. */
  readonly default: number;
  readonly max: number;
}

/** Pages of the consumer API (docs/behaviour/registry.md#limits). */
export interface PageLimits {
  /** Asking for more gives the most there is. */
  readonly servers: PageSize;
  /** Of one server; asking for more gives the most there is. */
  readonly versions: PageSize;
  /** Skills and plugins: asking for more is an error. */
  readonly bundles: PageSize;
}

export const DEFAULT_PAGES: PageLimits = {
  servers: { default: 30, max: 1000 },
  versions: { default: 1000, max: 1000 },
  bundles: { default: 50, max: 100 },
};
