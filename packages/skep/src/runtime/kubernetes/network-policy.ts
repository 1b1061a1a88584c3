import { isIP } from 'node:net';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { EgressPolicy } from '../../egress/policy.ts';
import type { WorkloadSpec } from '../runtime.ts';

/** Ranges that are no public addresses (RFC 6890), which an isolated server does not reach. */
const NOT_PUBLIC = {
  '0.0.0.0/0': [
    '0.0.0.0/8',
    '10.0.0.0/8',
    '100.64.0.0/10',
    '127.0.0.0/8',
    '169.254.0.0/16',
    '172.16.0.0/12',
    '192.168.0.0/16',
    '198.18.0.0/15',
    '224.0.0.0/3',
  ],
  '::/0': ['::/8', '64:ff9b::/96', '64:ff9b:1::/48', '2002::/16', 'fc00::/7', 'fe80::/10', 'ff00::/8'],
} as const;
/** Where clouds tell whoever asks who the machine is, and with which key it signs in. */
const METADATA = { '0.0.0.0/0': ['169.254.0.0/16'], '::/0': ['fe80::/10', 'fd00:ec2::254/128'] } as const;

type Ranges = Readonly<Record<string, readonly string[]>>;

function blocks(ranges: Ranges): readonly object[] {
  return Object.entries(ranges).map(([cidr, except]) => ({ ipBlock: { cidr, except: [...except] } }));
}

const DNS_PORTS = ['UDP', 'TCP'].map((protocol) => ({ protocol, port: 53 }));
/** Names are asked of the cluster's own servers alone: pods, or the cache that a node has at a link-local address. */
const DNS = {
  to: [{ namespaceSelector: {} }, { ipBlock: { cidr: '169.254.20.0/24' } }],
  ports: DNS_PORTS,
};

type Networked = Pick<WorkloadSpec, 'network' | 'isolation' | 'ports'>;

/**
 * What a pod may reach, and who may reach it: the `ingress` and `egress` of a NetworkPolicy (networking.k8s.io/v1), which
 * holds where the network of the cluster enforces them. Fails with `runtime/invalid-workload` for what none can say.
 */
export function networkRules({ network, isolation, ports }: Networked): {
  readonly ingress: readonly object[];
  readonly egress: readonly object[];
} {
  const listening = [...new Set(ports.map(({ containerPort }) => containerPort))];
  const open = listening.map((port) => ({ protocol: 'TCP', port }));
  const ingress = open.length === 0 ? [] : [{ from: [{ podSelector: {} }], ports: open }];
  return { ingress, egress: isolation === undefined ? plainEgress(network) : isolatedEgress(isolation) };
}

function plainEgress(network: string): readonly object[] {
  if (network === 'none') return [];
  if (network === 'bridge' || network === '') {
    return [{ to: [...blocks(METADATA), { namespaceSelector: {} }] }, DNS];
  }
  throw new SkepError('runtime/invalid-workload', {
    message: `a pod is not put into the network "${network}"`,
    hint: 'use --network bridge or none, or another runtime',
  });
}

function isolatedEgress({ allowAll, hosts, ports, runtimeGateway }: EgressPolicy): readonly object[] {
  const named = hosts.find((host) => isIP(host) === 0);
  if (named !== undefined) {
    throw new SkepError('runtime/invalid-workload', {
      message: `a cluster does not confine a server to the host "${named}": a NetworkPolicy knows addresses and ports alone`,
      hint: 'allow ports or addresses instead, leave --isolate-network out, or use --runtime docker or sandbox',
    });
  }
  if (runtimeGateway) {
    throw new SkepError('runtime/invalid-workload', {
      message: 'a pod has no gateway of a container engine to reach',
      hint: 'leave --allow-runtime-gateway out',
    });
  }
  const own = hosts.map((host) => ({ ipBlock: { cidr: `${host}/${isIP(host) === 4 ? 32 : 128}` } }));
  const at = ports.length === 0 ? {} : { ports: ports.map((port) => ({ protocol: 'TCP', port })) };
  const everywhere = { to: blocks(NOT_PUBLIC) };
  if (allowAll) return [everywhere, ...(own.length === 0 ? [] : [{ to: own, ...at }]), DNS];
  if (own.length > 0) return [{ to: own, ...at }];
  return ports.length === 0 ? [] : [{ ...everywhere, ...at }, DNS];
}
