import { isIP } from 'node:net';
import { domainToASCII } from 'node:url';
import { canonicalAddress, classOfAddress } from '@skep/core/fetch/address-class.ts';

// RFC 1123 §2.1, and the underscore that names of services have; a leading dot stands for the domain and all below it.
const NAME = /^\.?(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const MAX_NAME = 253;
/** A last label of digits makes a name an IPv4 address for every resolver (WHATWG URL), in spellings that hide which. */
const NUMERIC = /(?:^|\.)(?:\d+|0x[\da-f]*)$/i;
const NOT_A_HOST = 'is not a host name';

/**
 * What is wrong with a host of a permission profile, with what to write instead where that is known; undefined for a name
 * (a leading dot: the domain and all below it) or an IP address.
 */
export function hostProblem(host: string): string | undefined {
  if (isIP(host) !== 0) return host.includes('%') ? 'is an address of one network card' : undefined;
  const [, bracketed = ''] = /^\[([^\]]*)\]$/.exec(host) ?? [];
  if (isIP(bracketed) === 6) return instead(bracketed, 'stands in brackets');
  if (host.includes('*')) return wildcardProblem(host);
  if (host.includes('/')) return slashProblem(host);
  const [, name = '', port = ''] = /^(.+):(\d{1,5})$/.exec(host) ?? [];
  if (port !== '' && !name.includes(':'))
    return instead(name, 'has a port', ` here, and ${port} in "allow_port"`);
  if (host.endsWith('.') && isName(host.slice(0, -1))) return instead(host.slice(0, -1), 'ends in a dot');
  if (isName(host)) return numericProblem(host);
  const ascii = /[^\0-\u007F]/.test(host) ? domainToASCII(host) : '';
  return isName(ascii) ? instead(ascii, 'is not written in ASCII') : NOT_A_HOST;
}

const instead = (write: string, why: string, more = ''): string =>
  hostProblem(write) === undefined ? `${why}; write "${write}"${more}` : NOT_A_HOST;

const isName = (text: string): boolean => text.length <= MAX_NAME && NAME.test(text.toLowerCase());

function numericProblem(host: string): string | undefined {
  if (!NUMERIC.test(host)) return undefined;
  const url = URL.parse(`http://${host}`);
  return url === null || host.startsWith('.') ? NOT_A_HOST : instead(url.hostname, 'is a hidden IP address');
}

function wildcardProblem(host: string): string {
  const below = host.replace(/^\*?\./, '.');
  if (host === '*') return 'is a wildcard; set "insecure_allow_all" to true for any host';
  if (!below.includes('*') && isName(below)) {
    return `is a wildcard; write "${below}" for ${below.slice(1)} and all below it`;
  }
  return 'is a wildcard; write names, or a leading dot for a domain and all below it';
}

function slashProblem(host: string): string {
  const [address = ''] = host.split('/');
  if (isIP(address) !== 0) return 'is a range of addresses; name each address';
  const url = URL.parse(host);
  return url === null || url.hostname === '' ? NOT_A_HOST : instead(url.hostname, 'is an address of the web');
}

/** The one spelling of a host without a problem: names in lower case, addresses as RFC 5952 has them. */
export function spelledHost(host: string): string {
  return (isIP(host) === 0 ? undefined : canonicalAddress(host)) ?? host.toLowerCase();
}

/** RFC 6761 §6.3, and where clouds tell a machine its credentials. */
const NEVER_NAMES = /^(?:localhost|metadata|.*\.localhost|metadata\.google\.internal)$/;

/** True for a host that no permission profile opens, whatever it lists. */
export function isNeverReached(host: string): boolean {
  const spelled = spelledHost(host);
  return isIP(spelled) === 0
    ? NEVER_NAMES.test(spelled.replace(/^\./, ''))
    : classOfAddress(spelled) === 'never';
}

/** The machine that runs containers, as its engines call it; only `--allow-runtime-gateway` opens it. */
export const GATEWAY_NAMES: readonly string[] = [
  'host.docker.internal',
  'gateway.docker.internal',
  'host.containers.internal',
];
/** Where it is found on most engines. */
export const GATEWAY_ADDRESS = '172.17.0.1';

/** True for a name or the usual address of the container engine's gateway. */
export function isGatewayHost(host: string): boolean {
  const spelled = spelledHost(host);
  return spelled === GATEWAY_ADDRESS || GATEWAY_NAMES.includes(spelled);
}

/** Names that mean something in one network only (RFC 6762, RFC 8375, ICANN's `internal`), and those without a dot. */
const LOCAL = /^[^.]+$|\.(?:local|internal|intranet|lan|home|corp|localdomain|home\.arpa)$/;

/** True for a host that is, by its spelling, no public one. */
export function isPrivateHost(host: string): boolean {
  const spelled = spelledHost(host);
  return isIP(spelled) === 0 ? LOCAL.test(spelled.replace(/^\./, '')) : classOfAddress(spelled) !== 'public';
}
