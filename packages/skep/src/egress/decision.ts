/** What a gateway decided of one kind of connection, told once and then again with a count. One JSON line each. */
export interface Decision {
  /** RFC 3339, of the last one. */
  readonly time: string;
  readonly decision: 'allowed' | 'denied';
  /** Lower-case name or address that the workload asked for. */
  readonly host: string;
  /** Absent where only a name was asked for. */
  readonly port?: number;
  /** How it asked: through the proxy, by name alone, or by a connection whose own bytes name the host. */
  readonly via: 'proxy' | 'dns' | 'direct' | 'ingress';
  /** For people, of a denial: which rule said so. */
  readonly reason?: string;
  /** True where no profile can allow it. */
  readonly never?: true;
  /** How often until `time`. */
  readonly count: number;
}
