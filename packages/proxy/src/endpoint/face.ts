import type { Answerer } from '../call/call.ts';
import type { Step } from '../call/chain.ts';

/** One transport towards clients. It knows the port of the backend and no more of what stands behind it. */
export interface Face extends Answerer {
  /** As `/health` tells it. */
  readonly transport: 'streamable-http' | 'sse';
  /** What clients connect to. */
  readonly path: string;
  /** The last row of the chain. */
  readonly step: Step;
  /** The server was started anew: its clients have to initialize again. */
  endSessions(): void;
  /** Ends what would otherwise stay open for ever; calls in flight go on. */
  drain(): void;
  /** Idempotent. */
  close(): void;
}
