import { SkepError } from '@skep/core/errors/skep-error.ts';
import {
  bool,
  exactly,
  listOf,
  oneOf,
  optional,
  type Shape,
  type ShapeType,
  text,
  textThat,
  wholeNumber,
} from '@skep/core/settings/shape.ts';
import { canonicalAddress } from '@skep/core/fetch/address-class.ts';
import type { EgressPolicy } from './policy.ts';

const port = wholeNumber(1, 65_535);
const address = textThat(
  (value) => canonicalAddress(value) === value,
  'is not an IP address in its one spelling',
);

/** As a gateway is told it, and as a container engine keeps it for the next start. */
export const EGRESS_POLICY: Shape<EgressPolicy> = exactly({
  workload: text,
  allowAll: bool,
  hosts: listOf(text),
  ports: listOf(port),
  inbound: listOf(text),
  runtimeGateway: bool,
});

/** What a listening socket is for. */
const service = oneOf('proxy', 'dns', 'direct-tls', 'direct-http', 'ingress');
export type Service = ShapeType<typeof service>;

/**
 * How the process of a gateway is told what to do: JSON in the variable `SKEP_GATEWAY`. Who starts it writes this very
 * type; unknown members are refused, since one could forbid something.
 */
export const GATEWAY_CONFIG = exactly({
  /**
   * `listen`: it opens `listeners` itself. `open`: it opens them and hands them over, to a `handed` one, which serves what it
   * is handed; either of these two ends with its standard input.
   */
  mode: oneOf('listen', 'open', 'handed'),
  policy: EGRESS_POLICY,
  /** Addresses of the machine that runs it, besides those of the gateway's own network. */
  machine: listOf(address),
  /** Own address as the workload sees it. */
  answerWith: address,
  runtimeGateway: exactly({ addresses: listOf(address), leadsTo: optional(address) }),
  /** Of what an `open` one is handed to lead inside: requests are judged as those of an `ingress`, instead of bytes passed on. */
  judgesEntries: optional(bool),
  /**
   * `dns` is UDP and TCP; `direct-tls` and `direct-http` are for port 443 and 80 of the hosts that are asked for; `ingress`
   * needs `to`: where the server of the workload listens (see Ingress).
   */
  listeners: listOf(
    exactly({
      serve: service,
      host: address,
      port: wholeNumber(0, 65_535),
      to: optional(exactly({ host: address, port, proxy: text })),
    }),
  ),
});

export type GatewayConfig = ShapeType<typeof GATEWAY_CONFIG>;

/** Fails with `config/invalid`, naming the member. */
export function readGatewayConfig(json: string): GatewayConfig {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw new SkepError('config/invalid', { message: 'SKEP_GATEWAY is not JSON' });
  }
  return GATEWAY_CONFIG(value, (why, ...path) => {
    throw new SkepError('config/invalid', { message: `SKEP_GATEWAY: ${['', ...path].join('/')} ${why}` });
  });
}
