import { SkepError } from '@skep/core/errors/skep-error.ts';
import { exactly, listOf, optional, orEmpty, text, wholeNumber } from '@skep/core/settings/shape.ts';
import type { EgressPolicy } from '../../../egress/policy.ts';
import { EGRESS_POLICY } from '../../../egress/gateway-config.ts';
import { proxyEnv } from '../../../egress/proxy-env.ts';
import type { Observed, PortBinding, WorkloadSpec } from '../../runtime.ts';
import { ISOLATION_LABEL } from '../labels.ts';
import { addressIn, parseRange, rangeText, type Range } from '../network/subnets.ts';

/** What has to be known of an isolated workload to start it; its container carries it as a label. */
export interface Isolation {
  readonly policy: EgressPolicy;
  /** Of its internal network: the addresses that the server was told are in it. */
  readonly internal: Range;
  /** The ways in: that of an HTTP server to Skep's own proxy, and what is published beside it. */
  readonly ports: readonly PortBinding[];
}

export const ISOLATION_STATE_LABEL = 'skep.isolation';

/** True for what has no way out but a gateway, also where it is not known what that may let through. */
export function isIsolated(labels: Observed['labels']): boolean {
  return labels[ISOLATION_STATE_LABEL] !== undefined || labels[ISOLATION_LABEL] === 'true';
}

/** Where the gateway listens for programs that know their proxy. */
export const PROXY_PORT = 3128;

/** The gateway's address on a network of a workload; the first one is the engine's, used or not. */
export const gatewayAddress = (network: Range): string => addressIn(network, 2);
/** The server's on the internal one. */
export const serverAddress = (network: Range): string => addressIn(network, 3);

const port = wholeNumber(1, 65_535);
const binding = exactly({ hostIp: text, hostPort: wholeNumber(0, 65_535), containerPort: port });
const stored = exactly({
  policy: EGRESS_POLICY,
  internal: text,
  ports: orEmpty(listOf(binding), []),
  /** Of versions with one way in. */
  port: optional(binding),
});

/** What of a description cannot be isolated. Fails with `runtime/invalid-workload`. */
export function checkIsolation({ name, network, isolation }: WorkloadSpec): void {
  if (isolation === undefined) return;
  const refuse = (why: string, hint: string): never => {
    throw new SkepError('runtime/invalid-workload', {
      message: `workload "${name}" cannot be isolated: ${why}`,
      hint,
    });
  };
  if (network !== 'bridge' && network !== '')
    refuse(`it is to be on the network "${network}"`, 'leave out --network, or --isolate-network');
}

/** As the label says it. */
export function isolationText({ policy, internal, ports }: Isolation): string {
  return JSON.stringify({ policy, internal: rangeText(internal), ports });
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
  const { policy, internal, ports, port: only } = stored(value, fail);
  return {
    policy,
    internal: parseRange(internal) ?? fail('is not a range of addresses', 'internal'),
    ports: only === undefined ? ports : [only],
  };
}

/** Variables that lead the programs of an isolated server to its gateway; they win over the person's. */
export function isolatedEnv({ internal }: Isolation): Readonly<Record<string, string>> {
  return proxyEnv({ host: gatewayAddress(internal), port: PROXY_PORT });
}
