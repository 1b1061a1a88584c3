import { spelledHost } from './host-rule.ts';
import type { PermissionProfile } from './profile.ts';

/** What an isolated workload may connect to. */
export interface AllowedHosts {
  /** Every public host at every port; the lists then name what may be reached although it is private. */
  readonly all: boolean;
  /** Names, with a leading dot for the domain and all below it, and addresses, each once. Empty: any, where `ports` are. */
  readonly hosts: readonly string[];
  /** TCP ports, each once. Empty: any, where `hosts` are. */
  readonly ports: readonly number[];
}

const NOTHING: AllowedHosts = { all: false, hosts: [], ports: [] };

/**
 * What a permission profile allows where it is enforced (docs/behaviour/run.md#isolation). Both lists have to agree; one
 * that is empty restricts nothing; what allows nothing, or says nothing at all, allows no connection (decision 0268).
 */
export function allowedHosts({ network }: PermissionProfile): AllowedHosts {
  if (network?.mode === 'none' || network?.outbound === undefined) return NOTHING;
  const { insecure_allow_all: all = false, allow_host = [], allow_port = [] } = network.outbound;
  return { all, hosts: [...new Set(allow_host.map(spelledHost))], ports: [...new Set(allow_port)] };
}

/** The profile as it is learned under: every public host, and the private ones that it names. No network stays none. */
export function openedToLearn(profile: PermissionProfile): PermissionProfile {
  if (profile.network?.mode === 'none') return profile;
  const allow_host = [...allowedHosts(profile).hosts];
  return { ...profile, network: { ...profile.network, outbound: { insecure_allow_all: true, allow_host } } };
}

/** With this many ports each host is named with each of them. */
const MAX_PAIRED_PORTS = 3;

/** What is reached, a phrase each: `api.example.com:443`. Empty for nothing. */
export function allowedTexts({ all, hosts, ports }: AllowedHosts): readonly string[] {
  const named = hosts.length === 0 && !all && ports.length > 0 ? ['any public host'] : hosts;
  const everything = all ? ['any public host'] : [];
  if (ports.length > MAX_PAIRED_PORTS) {
    return [...everything, ...named, ...(named.length === 0 ? [] : ports.map((port) => `port ${port}`))];
  }
  const at = (host: string): readonly string[] =>
    ports.length === 0 ? [host] : ports.map((port) => hostAndPort(host, port));
  return [...everything, ...named.flatMap(at)];
}

/** `host:port`, an IPv6 address in brackets. */
export function hostAndPort(host: string, port: number | undefined): string {
  if (port === undefined) return host;
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
