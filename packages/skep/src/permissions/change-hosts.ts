import { SkepError } from '@skep/core/errors/skep-error.ts';
import { allowedHosts, type AllowedHosts } from './allowed-hosts.ts';
import { isGatewayHost, isNeverReached, isPrivateHost } from './host-rule.ts';
import { foreignNetwork, type PermissionProfile } from './profile.ts';
import type { Right } from './right.ts';

/** What of a run configuration says what its server reaches. */
export interface Networked {
  readonly name: string;
  readonly permission_profile: PermissionProfile;
  readonly isolate_network?: boolean | undefined;
  readonly allow_runtime_gateway?: boolean | undefined;
}

export type HostRight = Extract<Right, { readonly is: 'host' | 'port' }>;

/** What becomes of a workload, and what the person has to know about it, a sentence each. */
export interface Changed<Config> {
  /** The very same where it was so already. */
  readonly config: Config;
  readonly notes: readonly string[];
}

interface PermitHost {
  /** A name that leads to a private address, as far as is known. */
  readonly leadsToPrivate: boolean;
}

/**
 * Lets a workload connect to a host. Its profile lists hosts and ports apart, and both have to agree, so what else becomes
 * reachable with a port is said. Nothing that was reachable is lost. Fails with `usage/conflict` where a profile cannot say it.
 */
export function permitHost<Config extends Networked>(
  config: Config,
  right: HostRight,
  { leadsToPrivate }: PermitHost,
): Changed<Config> {
  const { permission_profile: profile, name } = config;
  const same = (note: string): Changed<Config> => ({ config, notes: [note] });
  if (right.is === 'host') checkPermittable(config, right.host);
  const isolated = config.isolate_network === true;
  if (!isolated && profile.network?.mode !== 'none') return same(openNote(config));
  const before = isolated ? allowedHosts(profile) : NOTHING;
  if (right.is === 'port') return permitPort(config, right.port, before);
  const { host, port } = right;
  const { all, hosts, ports } = before;
  const isPrivate = isPrivateHost(host) || leadsToPrivate;
  const isListed = hosts.includes(host) || (!isPrivate && hosts.some((one) => covers(one, host)));
  const isAnyPublic = all || (hosts.length === 0 && ports.length > 0);
  if (all && !isPrivate) return same(`${name} may connect to any public host already`);
  if (!all && isAnyPublic && isPrivate) {
    throw new SkepError('usage/conflict', {
      message: `${name} may connect to any public host at ${portsText(ports)}, and a profile cannot add one private host to that`,
      hint: `run it again with a permission profile that lists its hosts: skep rm ${name}, which keeps its data, and skep run`,
    });
  }
  const opens = port !== undefined && (ports.length > 0 || hosts.length === 0) && !ports.includes(port);
  if ((isListed || (isAnyPublic && !isPrivate)) && !opens) {
    return same(`${name} may connect to ${host}${ports.length > 0 ? ` at ${portsText(ports)}` : ''} already`);
  }
  const after: AllowedHosts = {
    all,
    hosts: isListed || (isAnyPublic && !isPrivate) ? hosts : [...hosts, host],
    ports: opens ? [...ports, port] : ports,
  };
  return { config: withHosts(config, after), notes: wideningNotes(before, after, right) };
}

const NOTHING: AllowedHosts = { all: false, hosts: [], ports: [] };

function permitPort<Config extends Networked>(
  config: Config,
  port: number,
  before: AllowedHosts,
): Changed<Config> {
  const { all, hosts, ports } = before;
  if (isEmpty(before)) {
    throw new SkepError('usage/conflict', {
      message: `${config.name} may connect to no host, so a port alone permits nothing`,
      hint: `name the host: skep permit ${config.name} HOST:${port}`,
    });
  }
  const isOpen = ports.includes(port) || ports.length === 0 || (all && hosts.length === 0);
  if (isOpen) return { config, notes: [`port ${port} is permitted to ${config.name} already`] };
  return { config: withHosts(config, { ...before, ports: [...ports, port] }), notes: [] };
}

/**
 * Takes a host from what a workload may connect to. Never makes anything reachable: without its last host or port nothing
 * is left. Fails with `usage/conflict` where a profile cannot leave it out.
 */
export function denyHost<Config extends Networked>(config: Config, right: HostRight): Changed<Config> {
  const { permission_profile: profile, name } = config;
  const { all, hosts, ports } = allowedHosts(profile);
  const same: Changed<Config> = {
    config,

    notes: [`${name} may not connect to ${shown(right)} anyway`],
  };
  const to = (after: AllowedHosts, notes: readonly string[]): Changed<Config> => ({
    config: withHosts(config, after),

    notes,
  });
  if (profile.network?.mode === 'none' || (right.is === 'host' && isNeverReached(right.host))) return same;
  if (config.isolate_network !== true) throw notIsolated(config, right);
  if (right.is === 'port') return denyPort(config, right.port, { same, to });
  const { host, port } = right;
  if (all) {
    const rest = hosts.filter((one) => one !== host);
    if (rest.length < hosts.length)
      return to({ all, hosts: rest, ports: rest.length === 0 ? [] : ports }, [
        `${host} stays reachable where it is public`,
      ]);
    if (isPrivateHost(host)) return same;
    throw cannotLeaveOut(name, host, 'any public host');
  }
  if (hosts.length === 0 && ports.length > 0 && !isPrivateHost(host)) {
    throw cannotLeaveOut(name, host, `any public host at ${portsText(ports)}`);
  }
  const domain = hosts.find((one) => one !== host && covers(one, host));
  if (port !== undefined && ports.length > 0 && !ports.includes(port)) return same;
  if (domain !== undefined) {
    throw new SkepError('usage/conflict', {
      message: `${name} may connect to ${host} because its profile lists ${domain}, and cannot leave one host of it out`,
      hint: `deny all of it with skep deny ${name} ${domain}`,
    });
  }
  if (!hosts.includes(host)) return same;
  const rest = hosts.filter((one) => one !== host);
  if (port === undefined || rest.length > 0) {
    if (port !== undefined && ports.length === 0) throw anyPort(name, host);
    const others = port === undefined ? [] : ports.filter((one) => one !== port);
    const notes = others.length === 0 ? [] : [`${host} is not reached at ${portsText(others)} either`];
    return to(rest.length === 0 ? NOTHING : { all, hosts: rest, ports }, notes);
  }
  if (ports.length === 0) throw anyPort(name, host);
  const left = ports.filter((one) => one !== port);
  return to(left.length === 0 ? NOTHING : { all, hosts, ports: left }, []);
}

interface Denying<Config> {
  readonly same: Changed<Config>;
  readonly to: (after: AllowedHosts, notes: readonly string[]) => Changed<Config>;
}

function denyPort<Config extends Networked>(
  config: Config,
  port: number,
  { same, to }: Denying<Config>,
): Changed<Config> {
  const allowed = allowedHosts(config.permission_profile);
  const { all, hosts, ports } = allowed;
  if (all) throw cannotLeaveOut(config.name, `port ${port}`, 'any public host at any port');
  if (ports.length === 0 && hosts.length > 0)
    throw cannotLeaveOut(config.name, `port ${port}`, 'its hosts at any port');
  if (!ports.includes(port)) return same;
  const left = ports.filter((one) => one !== port);
  return left.length > 0
    ? to({ ...allowed, ports: left }, [])
    : to(NOTHING, [`it was the only port, so ${config.name} may connect to nothing now`]);
}

/** The configuration, isolated, with these hosts and ports instead of its own. */
function withHosts<Config extends Networked>(config: Config, { all, hosts, ports }: AllowedHosts): Config {
  const { permission_profile: profile } = config;
  const { mode, outbound: _before, ...network } = profile.network ?? {};
  const isShut = mode === 'none';
  const outbound = { insecure_allow_all: all, allow_host: hosts, allow_port: ports };
  return {
    ...config,
    isolate_network: true,
    // Opened by nobody while nothing was reached, so not by this either.
    ...(isShut ? { allow_runtime_gateway: false } : {}),
    permission_profile: {
      ...profile,
      network: { ...network, ...(mode === undefined || isShut ? {} : { mode }), outbound },
    },
  };
}

function wideningNotes(
  before: AllowedHosts,
  after: AllowedHosts,
  { host, port }: Extract<Right, { readonly is: 'host' }>,
): readonly string[] {
  const others = before.hosts.filter((one) => one !== host);
  const isAny = after.hosts.length === 0;
  if (port !== undefined && after.ports.length > before.ports.length && (others.length > 0 || isAny)) {
    const whom = isAny ? 'every public host' : others.join(', ');
    return [`port ${port} is open for ${whom} too, because a profile lists hosts and ports apart`];
  }
  if (port !== undefined && after.ports.length === 0) {
    return [`its profile lists no ports, so ${host} is reached at any`];
  }
  const at = after.ports.filter((one) => one !== port);
  return at.length === 0 ? [] : [`${host} is reached at ${portsText(at)}${port === undefined ? '' : ' too'}`];
}

function checkPermittable({ name, allow_runtime_gateway }: Networked, host: string): void {
  if (isNeverReached(host)) {
    throw new SkepError('usage/conflict', {
      message: `${host} is a host that no permission profile opens`,
      hint: 'give the server what it needs in another way, for example with --env or --volume',
    });
  }
  if (!isGatewayHost(host) || allow_runtime_gateway === true) return;
  throw new SkepError('usage/conflict', {
    message: `${host} is the machine that runs ${name}, which no permission profile opens`,
    hint: `run it again with --allow-runtime-gateway: skep rm ${name}, which keeps its data, and skep run`,
  });
}

/**
 * Lets a workload connect only to what its profile allows: any public host, where it lists none. Fails with
 * `usage/conflict` on a network that is not its own.
 */
export function isolate<Config extends Networked>(config: Config): Changed<Config> {
  const { name, permission_profile: profile } = config;
  const network = foreignNetwork(profile);
  if (network !== undefined) {
    throw new SkepError('usage/conflict', {
      message: `${name} is on the network "${network}", on which nothing can be isolated`,
      hint: `run it again without that network: skep rm ${name}, which keeps its data, and skep run`,
    });
  }
  if (profile.network?.mode === 'none') return { config, notes: [`${name} has no network anyway`] };
  if (config.isolate_network === true) return { config, notes: [`${name} is isolated already`] };
  return { config: { ...config, isolate_network: true }, notes: [] };
}

function openNote({ name, permission_profile }: Networked): string {
  const network = foreignNetwork(permission_profile);
  return network === undefined
    ? `${name} is not isolated, so it can connect to any host already`
    : `${name} is on the network "${network}", so it can connect to any host of it already`;
}

function notIsolated({ name }: Networked, right: HostRight): SkepError {
  return new SkepError('usage/conflict', {
    message: `${name} is not isolated, so nothing keeps it from ${shown(right)}`,
    hint: `isolate it first: skep deny ${name} --isolate-network`,
  });
}

function cannotLeaveOut(name: string, what: string, all: string): SkepError {
  return new SkepError('usage/conflict', {
    message: `${name} may connect to ${all}, and a profile cannot leave ${what} out of that`,
    hint: `run it again with a permission profile that lists its hosts: skep rm ${name}, which keeps its data, and skep run`,
  });
}

function anyPort(name: string, host: string): SkepError {
  return new SkepError('usage/conflict', {
    message: `${name} may connect to ${host} at any port, and a profile cannot leave one out`,
    hint: `deny the host with skep deny ${name} ${host}`,
  });
}

function shown(right: HostRight): string {
  if (right.is === 'port') return `port ${right.port}`;
  return right.port === undefined ? right.host : `${right.host} at port ${right.port}`;
}

const isEmpty = ({ all, hosts, ports }: AllowedHosts): boolean => !all && hosts.length + ports.length === 0;

/** True for a domain, with its dot, and what is it or below it. */
const covers = (domain: string, host: string): boolean =>
  domain.startsWith('.') && `.${host.replace(/^\./, '')}`.endsWith(domain);

const portsText = (ports: readonly number[]): string =>
  `port${ports.length === 1 ? '' : 's'} ${ports.join(', ')}`;
