/** A decision point that is asked about each call (docs/behaviour/proxy.md#webhooks). */
export interface WebhookSettings {
  /** For logs. */
  readonly name: string;
  readonly url: string;
  readonly timeoutMs: number;
  /** What becomes of a call about which it could not be asked. */
  readonly failurePolicy: 'fail' | 'ignore';
  /** False only where a person has switched the check of certificates off; then plain HTTP is good, too. */
  readonly verify: boolean;
  /** Absolute; PEM. */
  readonly caPath?: string | undefined;
  /** Absolute, both or neither; PEM. */
  readonly certPath?: string | undefined;
  readonly keyPath?: string | undefined;
  /** What requests are signed with. A file is read for each of them, byte for byte, because secrets rotate. */
  readonly secret?: { readonly file: string } | { readonly value: string } | undefined;
}

/** In the order in which they are asked. */
export interface WebhooksSettings {
  readonly validating: readonly WebhookSettings[];
  readonly mutating: readonly WebhookSettings[];
}
