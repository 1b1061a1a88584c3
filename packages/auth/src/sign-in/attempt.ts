import { readyClient, type ChosenClient } from './client-identity.ts';
import type { Discovered } from './discover.ts';
import type { KeptClient, SignInServices, SignInTarget, SignInWay } from './port.ts';
import { createProver, type Prover } from './proof.ts';
import type { Reach } from './reach.ts';

/** One try to sign in, as one client. */
export interface Attempt {
  readonly target: SignInTarget;
  readonly way: SignInWay;
  readonly found: Discovered;
  readonly chosen: ChosenClient;
  readonly reach: Reach;
  readonly services: SignInServices;
}

/** One that can ask for tokens. */
export interface ReadyAttempt extends Attempt {
  readonly client: KeptClient;
  /** Of the key that its tokens are bound to, where the resource wants that. */
  readonly prover: Prover | undefined;
}

/** With a client and, where tokens are bound, a new key. `callbackPort` is that of the way `browser`. Errors as `readyClient`. */
export async function readyAttempt(attempt: Attempt, callbackPort?: number): Promise<ReadyAttempt> {
  const { way, found, chosen, reach, services } = attempt;
  const client = await readyClient(chosen, found, { ...services, reach, way, callbackPort });
  const prover = found.isBound ? await createProver(client) : undefined;
  return { ...attempt, client, prover };
}
