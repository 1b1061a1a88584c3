/**
 * Flags for the Node of a gateway's process, before the file. It holds little for long: a small young generation, no
 * threads of V8 besides its own, and a bound that a flood of connections ends it by, not the machine. `main.ts` collects
 * what connections were read into, of which V8 lets 64 MB lie.
 */
export const GATEWAY_NODE_FLAGS: readonly string[] = [
  '--max-semi-space-size=1',
  '--max-old-space-size=96',
  '--v8-pool-size=0',
  '--expose-gc',
  '--no-warnings',
];

/**
 * Variables for the same process, for glibc: one heap for all threads, and what connections are read into is given back
 * to the system with its last use (mallopt(3)); a gateway that has moved gigabytes is then no larger than a new one.
 */
export const GATEWAY_NODE_ENV: Readonly<Record<string, string>> = {
  MALLOC_ARENA_MAX: '1',
  MALLOC_MMAP_THRESHOLD_: '16384',
  MALLOC_TRIM_THRESHOLD_: '16384',
};
