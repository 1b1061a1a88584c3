import type { Server } from 'node:net';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Gateway } from './gateway.ts';
import type { Service } from './gateway-config.ts';
import type { Ingress } from './serve-ingress.ts';

/** Has a gateway serve a listening TCP socket. Fails with `config/invalid` for `ingress` where nobody said to what. */
export function serveStream(gateway: Gateway, service: Service, listener: Server, ingress?: Ingress): void {
  if (service === 'proxy') gateway.serveProxy(listener);
  else if (service === 'dns') gateway.serveDnsOverTcp(listener);
  else if (service === 'direct-tls') gateway.serveDirectTls(listener);
  else if (service === 'direct-http') gateway.serveDirectHttp(listener);
  else if (ingress !== undefined) gateway.serveIngress(listener, ingress);
  else throw new SkepError('config/invalid', { message: 'SKEP_GATEWAY: an ingress leads nowhere' });
}
