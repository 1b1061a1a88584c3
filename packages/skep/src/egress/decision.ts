/** What a gateway decided of one kind of connection, told once and then again with a count. One JSON line each. */
export interface Decision {
  /** RFC 3339, of the last one. */
  readonly time: string;
  /** `not-found`: it might, but the name has no address. */
  readonly decision: 'allowed' | 'denied' | 'not-found';
  /** Lower-case name or address that the workload asked for. */
  readonly host: string;
  /** Absent where only a name was asked for. */
  readonly port?: number;
  /** How it asked: through the proxy, by name alone, or by a connection whose own bytes name the host. */
  readonly via: 'proxy' | 'dns' | 'direct' | 'ingress';
  /** For people, of all but what was allowed: why. */
  readonly reason?: string;
  /** True where no profile can allow it. */
  readonly never?: true;
  /** How often until `time`. */
  readonly count: number;
}
