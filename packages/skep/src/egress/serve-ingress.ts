import type { IncomingMessage } from 'node:http';
import { connect, type Server, type Socket } from 'node:net';
import type { Clock } from '@skep/core/time/clock.ts';
import { answerSocket, answerText, forwardRequest, forwardUpgrade, hasBody } from './forward-request.ts';
import { canonicalHost, parseAuthority } from './host-name.ts';
import type { EgressPolicy } from './policy.ts';
import type { Decided } from './reach.ts';
import { serveHttp } from './serve-http.ts';

/** Where the server of the workload listens, and who may ask. */
export interface Ingress {
  readonly host: string;
  readonly port: number;
  /** `host:port` that Skep's own proxy asks for: passes whatever `inbound` of the policy lists (decision 0257). */
  readonly proxy: string;
}

export interface IngressOptions {
  readonly policy: EgressPolicy;
  readonly ingress: Ingress;
  readonly record: (decided: Decided) => void;
  readonly clock: Clock;
}

/**
 * Serves an HTTP/1.1 reverse proxy to the server of the workload: each request needs a `Host` that the policy lists, or,
 * where it lists none, the workload's name or that of loopback. Bodies and streams pass as they come, without a time
 * limit. `Host` is passed on as it is.
 */
export function serveIngress(listener: Server, options: IngressOptions): void {
  const { ingress, clock, record, policy } = options;
  const isAllowed = hostCheck(options);
  const target = (req: IncomingMessage): { readonly path: string; readonly host: string } | undefined => {
    const { url = '', headersDistinct } = req;
    const [host, ...others] = headersDistinct['host'] ?? [];
    if (host === undefined || others.length > 0 || !(url.startsWith('/') || url === '*')) return undefined;
    if (isAllowed(host)) return { path: url, host };
    const asked = parseAuthority(host, 80)?.host ?? 'unreadable';
    record({ decision: 'denied', host: asked, via: 'ingress', reason: 'no name that it may be reached by' });
    return undefined;
  };
  const refusal = `Skep lets nobody reach "${policy.workload}" by this name; network.inbound of its profile lists them.`;
  serveHttp(listener, clock, {
    async request(req, res) {
      const asked = target(req);
      if (asked === undefined) return answerText(res, 403, refusal);
      const socket = await connected(ingress);
      if (socket === undefined) return answerText(res, 502, 'the server does not answer');
      if (res.destroyed) socket.destroy();
      else forwardRequest(req, res, { ...asked, socket });
    },
    async upgrade(req, client, head) {
      const asked = hasBody(req) ? undefined : target(req);
      if (asked === undefined) return answerSocket(client, 403, refusal);
      const socket = await connected(ingress);
      if (socket === undefined) return answerSocket(client, 502, 'the server does not answer');
      if (client.destroyed) socket.destroy();
      else forwardUpgrade(req, client, head, { ...asked, socket });
    },
  });
}

function connected({ host, port }: Ingress): Promise<Socket | undefined> {
  const socket = connect({ host, port, allowHalfOpen: true });
  return new Promise((resolve) => {
    socket.once('connect', () => resolve(socket.setNoDelay(true)));
    socket.on('error', () => void socket.destroy());
    socket.once('close', () => resolve(undefined));
  });
}

function hostCheck({ policy, ingress }: IngressOptions): (host: string) => boolean {
  const own = parseAuthority(ingress.proxy, 80);
  const listed =
    policy.inbound.length > 0 ? policy.inbound : [policy.workload, 'localhost', '127.0.0.1', '::1'];
  const exact = new Set(listed.filter((one) => !one.startsWith('.')).map((one) => canonicalHost(one)));
  const domains = listed
    .filter((one) => one.startsWith('.'))
    .map((one) => `.${canonicalHost(one.slice(1)) ?? ''}`);
  return (text) => {
    const asked = parseAuthority(text, 80);
    if (asked === undefined) return false;
    if (own !== undefined && asked.host === own.host && asked.port === own.port) return true;
    return exact.has(asked.host) || domains.some((domain) => `.${asked.host}`.endsWith(domain));
  };
}
