import { isIP } from 'node:net';
import type { IncomingMessage } from 'node:http';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { headerValues } from '@skep/core/fetch/header-values.ts';
import type { CorsSettings } from '../../config/cors.ts';
import { badRequest } from '../route/parameter.ts';
import { closeUnlessBounded } from './read-body.ts';
import type { Run } from './request.ts';

/** Under which names a server without sign-in is reached, and from which web pages. */
export interface HostRules {
  /** Besides IP addresses and `localhost`; lower-case. */
  readonly hosts: readonly string[];
  /** Besides pages of the server's own address. */
  readonly origins: CorsSettings['allowedOrigins'] | undefined;
  /** Values of `Host` that passed before. */
  readonly known?: Set<string>;
}

/** Refuses what nobody may send, before anything else of the request is looked at. */
export function guard(hosts?: () => HostRules | undefined): Run {
  return (request) => {
    const { raw } = request;
    const rules = hosts?.();
    const fault = (rules === undefined ? undefined : hostFault(raw, rules)) ?? targetFault(raw);
    if (fault === undefined) return undefined;
    // Where a body ends that nobody could read is not known.
    if (raw.headers['transfer-encoding'] !== undefined) closeUnlessBounded(request);
    throw fault;
  };
}

function targetFault({ headers, url = '' }: IncomingMessage): SkepError | undefined {
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') {
    return badRequest('the only transfer coding that is understood is "chunked"');
  }
  return hasDotSegment(url) ? badRequest('the path must not contain dot segments') : undefined;
}

/**
 * Proxies collapse `/../`, `/./` and their escaped forms, so a path that holds one could be another path to them than
 * to us; none is answered. `url` is the request target as it was sent.
 */
export function hasDotSegment(url: string): boolean {
  const [path = ''] = url.split(/[?#]/, 1);
  return /(?:^|\/)(?:\.|%2e){1,2}(?=\/|$)/i.test(path);
}

/**
 * Without sign-in the address is all that keeps strangers away, and a web page in the browser of somebody inside is one. A
 * page that resolves its own name to this server (DNS rebinding) sends that name as `Host`; any other page sends its
 * `Origin`. Undefined for what may pass.
 */
export function hostFault(request: IncomingMessage, rules: HostRules): SkepError | undefined {
  const { rawHeaders, headers, httpVersion, url = '' } = request;
  const { host = '', origin } = headers;
  // Probes of load balancers, as RFC 9112 allows for HTTP/1.0; no browser sends that, and none leaves the host out.
  if (headers.host === undefined && origin === undefined && httpVersion === '1.0') return undefined;
  const isOne = headerValues(rawHeaders, 'host').length === 1;
  if (!isOne || (!(rules.known?.has(host) ?? false) && !isServedHost(host, rules))) {
    return new SkepError('registry/foreign-host');
  }
  // Where the target names a host, that one counts (RFC 9112 §3.2.2).
  const named = url.startsWith('/') ? undefined : /^https?:\/\/([^/?#]*)/i.exec(url)?.[1];
  if (named !== undefined && !isServedName(named, rules.hosts)) return new SkepError('registry/foreign-host');
  return origin === undefined || isAllowedOrigin(origin, host, rules.origins)
    ? undefined
    : new SkepError('registry/foreign-origin');
}

const MAX_KNOWN = 100;

function isServedHost(host: string, { hosts, known }: HostRules): boolean {
  const isServed = isServedName(host, hosts);
  if (isServed && known !== undefined && known.size < MAX_KNOWN) known.add(host);
  return isServed;
}

function isServedName(host: string, hosts: readonly string[]): boolean {
  const [, bracketed, plain = ''] = /^(?:\[([^\]]*)\]|([^:]*))(?::\d{1,5})?$/.exec(host) ?? [];
  if (bracketed !== undefined) return isIP(bracketed) === 6;
  const name = plain.toLowerCase();
  return name === 'localhost' || isIP(name) === 4 || hosts.includes(name);
}

function isAllowedOrigin(origin: string, host: string, origins: HostRules['origins']): boolean {
  if (origins === '*' || origins?.includes(origin) === true) return true;
  const page = URL.parse(origin);
  return page !== null && page.host !== '' && page.host === URL.parse(`${page.protocol}//${host}`)?.host;
}
