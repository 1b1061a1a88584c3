/** One page of docs/reference; listed in scripts/docs.ts. */
export interface Page {
  /** File name in docs/reference. */
  readonly file: string;
  readonly title: string;
  /** One sentence for the index. */
  readonly brief: string;
  /** Markdown below the title, from the product's own tables; the same input gives the same text. */
  readonly render: () => string | Promise<string>;
}
