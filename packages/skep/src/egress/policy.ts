/**
 * What an isolated workload may reach, and by which names it may be reached (run configuration `isolate_network`,
 * docs/behaviour/run.md). Plain data: it crosses into the gateway's process as JSON.
 */
export interface EgressPolicy {
  /** The workload, for messages. */
  readonly workload: string;
  /** Every public host and port; the two lists below do not narrow it, but name private hosts beside it. */
  readonly allowAll: boolean;
  /** Lower-case host names, a leading dot for the domain and all below it, and IP addresses. Empty: any, where `ports` are. */
  readonly hosts: readonly string[];
  /** TCP ports. Empty: any, where `hosts` are. With neither and without `allowAll` nothing is allowed. */
  readonly ports: readonly number[];
  /** Names in `Host` by which clients may reach it; empty for its own name, `localhost` and 127.0.0.1. */
  readonly inbound: readonly string[];
  /** The container engine's own names and addresses may be reached, at any port (`--allow-runtime-gateway`). */
  readonly runtimeGateway: boolean;
}
