import { SkepError } from '@skep/core/errors/skep-error.ts';
import { exactly, optional, text, wholeNumber } from '@skep/core/settings/shape.ts';
import type { EgressPolicy } from '../../../egress/policy.ts';
import { EGRESS_POLICY } from '../../../egress/gateway-config.ts';
import { proxyEnv } from '../../../egress/proxy-env.ts';
import type { PortBinding, WorkloadSpec } from '../../runtime.ts';
import { addressIn, parseRange, rangeText, type Range } from '../network/subnets.ts';

/** What has to be known of an isolated workload to start it; its container carries it as a label. */
export interface Isolation {
  readonly policy: EgressPolicy;
  /** Of its internal network: the addresses that the server was told are in it. */
  readonly internal: Range;
  /** The way in, if there is one. */
  readonly port?: PortBinding;
}

export const ISOLATION_STATE_LABEL = 'skep.isolation';

/** Where the gateway listens for programs that know their proxy. */
export const PROXY_PORT = 3128;

/** The gateway's address on a network of a workload; the first one is the engine's, used or not. */
export const gatewayAddress = (network: Range): string => addressIn(network, 2);
/** The server's on the internal one. */
export const serverAddress = (network: Range): string => addressIn(network, 3);

const port = wholeNumber(1, 65_535);
const stored = exactly({
  policy: EGRESS_POLICY,
  internal: text,
  port: optional(exactly({ hostIp: text, hostPort: port, containerPort: port })),
});

/** What of a description cannot be isolated. Fails with `runtime/invalid-workload`. */
export function checkIsolation({ name, network, ports, isolation }: WorkloadSpec): void {
  if (isolation === undefined) return;
  const refuse = (why: string, hint: string): never => {
    throw new SkepError('runtime/invalid-workload', {
      message: `workload "${name}" cannot be isolated: ${why}`,
      hint,
    });
  };
  if (network !== 'bridge' && network !== '')
    refuse(`it is to be on the network "${network}"`, 'leave out --network, or --isolate-network');
  if (ports.length > 1)
    refuse('it has more than one port, and its gateway leads to one', 'leave out --publish');
}

/** As the label says it. */
export function isolationText({ policy, internal, port: bound }: Isolation): string {
  return JSON.stringify({ policy, internal: rangeText(internal), ...(bound ? { port: bound } : {}) });
}

/** What a label says. Fails with `runtime/start-failed`, so that nothing starts unguarded. */
export function readIsolation(label: string, name: string): Isolation {
  const fail = (why: string, ...path: readonly (string | number)[]): never => {
    throw new SkepError('runtime/start-failed', {
      message: `workload "${name}" cannot be isolated as its label ${ISOLATION_STATE_LABEL} says: ${['', ...path].join('/')} ${why}`,
      hint: 'remove the workload and run it again',
    });
  };
  let value: unknown;
  try {
    value = JSON.parse(label);
  } catch {
    fail('is not JSON');
  }
  const { policy, internal, port: bound } = stored(value, fail);
  return {
    policy,
    internal: parseRange(internal) ?? fail('is not a range of addresses', 'internal'),
    ...(bound ? { port: bound } : {}),
  };
}

/** Variables that lead the programs of an isolated server to its gateway; they win over the person's. */
export function isolatedEnv({ internal }: Isolation): Readonly<Record<string, string>> {
  return proxyEnv({ host: gatewayAddress(internal), port: PROXY_PORT });
}
