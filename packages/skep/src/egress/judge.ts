import { isIP } from 'node:net';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { canonicalAddress, classOfAddress } from '@skep/core/fetch/address-class.ts';
import { GATEWAY_ADDRESS, GATEWAY_NAMES } from '../permissions/host-rule.ts';
import { canonicalHost } from './host-name.ts';
import type { EgressPolicy } from './policy.ts';

/** What stands around a workload, for its policy to be judged by. */
export interface Surroundings {
  readonly policy: EgressPolicy;
  /** Addresses of this machine, asked for anew each time: reached only where the profile names them. */
  readonly machine: () => readonly string[];
  readonly runtimeGateway: RuntimeGateway;
}

/** The way from a workload to the machine that runs it (`--allow-runtime-gateway`). */
export interface RuntimeGateway {
  /** Addresses of it, besides 172.17.0.1. */
  readonly addresses: readonly string[];
  /** The address that its names lead to, loopback too; without one they are resolved. */
  readonly leadsTo?: string;
}

export interface Denial {
  /** For people: which rule said so. */
  readonly reason: string;
  /** No profile can allow it. */
  readonly never?: true;
  /** `skep permit` with the host and port would allow it. */
  readonly permittable?: true;
}

/** Undefined: allowed. */
export type Verdict = Denial | undefined;

/**
 * Decides what a workload may reach; the first rule that matches wins (docs/behaviour/run.md#isolation): addresses that
 * nobody may reach, the runtime's gateway, everything public, the hosts and ports of the profile, nothing.
 */
export class Judge {
  readonly #around: Surroundings;
  readonly #exact: ReadonlySet<string>;
  /** Each with its dot. */
  readonly #domains: readonly string[];
  readonly #gateways: ReadonlySet<string>;
  readonly #leadsTo: string | undefined;

  /** Fails with `config/invalid` where a host of the policy is none. */
  constructor(around: Surroundings) {
    const { hosts } = around.policy;
    const { addresses, leadsTo } = around.runtimeGateway;
    this.#around = around;
    this.#domains = hosts
      .filter((host) => host.startsWith('.'))
      .map((host) => `.${nameOf(host.slice(1), host)}`);
    this.#exact = new Set(hosts.filter((host) => !host.startsWith('.')).map((host) => hostOf(host)));
    this.#gateways = new Set([GATEWAY_ADDRESS, ...addresses.map((one) => hostOf(one)), ...GATEWAY_NAMES]);
    this.#leadsTo = leadsTo === undefined ? undefined : hostOf(leadsTo);
  }

  /** Where the name of the runtime's gateway leads without a question, if it may be reached. */
  leadsTo(host: string): string | undefined {
    return GATEWAY_NAMES.includes(host) && this.#around.policy.runtimeGateway ? this.#leadsTo : undefined;
  }

  /** Whether this name or address (canonical) may be asked for at all; what it resolves to is for `address` to judge. */
  host(host: string, port: number): Verdict {
    if (isIP(host) !== 0 && classOfAddress(host) === 'never') return neverAllowed(host);
    if (this.#gateways.has(host)) return this.#gatewayVerdict(host);
    const { allowAll, hosts, ports } = this.#around.policy;
    if (allowAll) return undefined;
    if (hosts.length === 0 && ports.length === 0)
      return { reason: 'the profile allows no connection', permittable: true };
    if (hosts.length > 0 && !this.#isListed(host))
      return { reason: `the profile does not list ${host}`, permittable: true };
    if (ports.length > 0 && !ports.includes(port))
      return { reason: `the profile does not list port ${port}`, permittable: true };
    return undefined;
  }

  /** Whether this address may be connected to for a host that `host` let pass. */
  address(host: string, port: number, found: string): Verdict {
    const address = canonicalAddress(found);
    if (address === undefined) return neverAllowed(host, found);
    const leadsTo = this.leadsTo(host);
    if (leadsTo !== undefined && address === leadsTo) return undefined;
    const kind = classOfAddress(address);
    if (kind === 'never') return neverAllowed(host, address);
    if (this.#gateways.has(address) || this.#gateways.has(host)) return this.#gatewayVerdict(host, address);
    const isOwn = this.#around.machine().includes(address);
    if ((kind === 'public' && !isOwn) || this.#isNamed(host, port, address)) return undefined;
    const what = isOwn ? 'is an address of this machine' : 'is a private address';
    return {
      reason: `${leading(host, address)} ${what}, and the profile does not name it`,
      permittable: true,
    };
  }

  #gatewayVerdict(host: string, address = host): Verdict {
    if (this.#around.policy.runtimeGateway) return undefined;
    return {
      reason: `${leading(host, address)} is the machine that runs it: --allow-runtime-gateway allows that`,
    };
  }

  #isListed(host: string): boolean {
    if (this.#exact.has(host)) return true;
    return isIP(host) === 0 && this.#domains.some((domain) => `.${host}`.endsWith(domain));
  }

  /** A whole domain does not name a private host, since whoever owns the domain says where its names lead. */
  #isNamed(host: string, port: number, address: string): boolean {
    const { ports } = this.#around.policy;
    return (
      (this.#exact.has(host) || this.#exact.has(address)) && (ports.length === 0 || ports.includes(port))
    );
  }
}

function neverAllowed(host: string, address = host): Denial {
  return { reason: `${leading(host, address)} is an address that no profile can allow`, never: true };
}

function leading(host: string, address: string): string {
  return host === address ? host : `${host} leads to ${address}, which`;
}

function hostOf(text: string, shown = text): string {
  const host = canonicalHost(text);
  if (host !== undefined) return host;
  throw new SkepError('config/invalid', { message: `"${shown}" is not a host` });
}

function nameOf(text: string, shown: string): string {
  const host = hostOf(text, shown);
  if (isIP(host) === 0) return host;
  throw new SkepError('config/invalid', { message: `"${shown}" is not a domain` });
}
