import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { systemClock } from '@skep/core/time/clock.ts';
import { Gateway, type GatewayOptions } from './gateway.ts';
import type { Decision } from './decision.ts';
import type { EgressPolicy } from './policy.ts';
import type { Ingress } from './serve-ingress.ts';

export const NOTHING: EgressPolicy = {
  workload: 'demo',
  allowAll: false,
  hosts: [],
  ports: [],
  inbound: [],
  runtimeGateway: false,
};

/** Public addresses that lead to loopback in a test, so that the real rules judge them. */
const STAND_IN = '93.184.216.34';

interface Fixture extends Partial<EgressPolicy> {
  /** What names resolve to; every other leads to a public address. */
  readonly names?: Readonly<Record<string, readonly string[]>>;
  /** Where a port of a public address leads on loopback. */
  readonly leadsTo?: Readonly<Record<number, number>>;
  readonly ingress?: Ingress;
  readonly options?: Partial<GatewayOptions>;
}

export interface OpenGateway {
  readonly proxy: number;
  readonly tls: number;
  readonly http: number;
  readonly ingress: number;
  readonly dns: number;
  readonly dnsTcp: number;
  /** All lines so far, as they were written. */
  readonly decisions: () => readonly Decision[];
  /** Names that were resolved. */
  readonly resolved: readonly string[];
  /** Addresses and ports that were connected to. */
  readonly connected: readonly string[];
  [Symbol.asyncDispose](): Promise<void>;
}

/** A gateway on loopback with every service; what it resolves and connects to are stand-ins, what it decides is not. */
export async function openGateway(fixture: Fixture = {}): Promise<OpenGateway> {
  const { names = {}, leadsTo = {}, ingress, options = {}, ...policy } = fixture;
  const lines: string[] = [];
  const resolved: string[] = [];
  const connected: string[] = [];
  const sockets = new Set<Socket>();
  const gateway = new Gateway({
    policy: { ...NOTHING, ...policy },
    machine: () => [],
    answerWith: '10.9.8.7',
    runtimeGateway: { addresses: [] },
    clock: systemClock,
    write: (line) => void lines.push(line),
    resolve: async (name) => {
      resolved.push(name);
      const found = names[name] ?? [STAND_IN];
      if (found.length === 0) throw Object.assign(new Error(name), { code: 'ENOTFOUND' });
      return found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
    },
    connect: (addresses, port) => {
      connected.push(`${addresses.map(({ address }) => address).join()} ${port}`);
      const socket = connect({ host: '127.0.0.1', port: leadsTo[port] ?? port, allowHalfOpen: true });
      sockets.add(socket);
      return socket;
    },
    ...options,
  });
  const servers: Server[] = [];
  const open = async (serve: (server: Server) => void) => {
    const server = createServer();
    server.on('connection', (socket) => void sockets.add(socket));
    serve(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    servers.push(server);
    return (server.address() as AddressInfo).port;
  };
  const udp = createSocket('udp4');
  gateway.serveDnsOverUdp(udp);
  udp.bind(0, '127.0.0.1');
  await once(udp, 'listening');
  return {
    proxy: await open((server) => gateway.serveProxy(server)),
    tls: await open((server) => gateway.serveDirectTls(server)),
    http: await open((server) => gateway.serveDirectHttp(server)),
    ingress: ingress === undefined ? 0 : await open((server) => gateway.serveIngress(server, ingress)),
    dns: udp.address().port,
    dnsTcp: await open((server) => gateway.serveDnsOverTcp(server)),
    decisions: () => lines.map((line) => JSON.parse(line) as Decision),
    resolved,
    connected,
    async [Symbol.asyncDispose]() {
      udp.close();
      const closed = servers.map((server) => once(server, 'close'));
      for (const server of servers) server.close();
      for (const socket of sockets) socket.destroy();
      await Promise.all(closed);
    },
  };
}
