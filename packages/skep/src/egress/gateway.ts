import type { Socket as UdpSocket } from 'node:dgram';
import type { Server } from 'node:net';
import type { Clock } from '@skep/core/time/clock.ts';
import { DecisionLog } from './decision-log.ts';
import { Judge, type RuntimeGateway } from './judge.ts';
import type { EgressPolicy } from './policy.ts';
import { type Connect, type Decided, Reach, type ResolveAll } from './reach.ts';
import { serveDirectHttp, serveDirectTls } from './serve-direct.ts';
import { serveDnsOverTcp, serveDnsOverUdp } from './serve-dns.ts';
import { type Ingress, serveIngress } from './serve-ingress.ts';
import { serveProxy } from './serve-proxy.ts';

export interface GatewayOptions {
  readonly policy: EgressPolicy;
  /** Addresses of this machine, asked for anew each time: reached only where the profile names them. */
  readonly machine: () => readonly string[];
  /** Own address as the workload sees it, which questions for names are answered with. */
  readonly answerWith: string;
  readonly runtimeGateway: RuntimeGateway;
  readonly clock: Clock;
  /** Takes a line of a Decision in JSON, with its line end. */
  readonly write: (line: string) => void;
  readonly resolve?: ResolveAll;
  readonly connect?: Connect;
}

/**
 * The one way out of, and over HTTP into, an isolated workload (decision 0255). It is given listening sockets, wherever
 * these were opened, and serves them until its process ends.
 */
export class Gateway {
  readonly #log: DecisionLog;
  readonly #serve;
  readonly #policy: EgressPolicy;

  /** Fails with `config/invalid` where a host of the policy is none. */
  constructor(options: GatewayOptions) {
    const { policy, clock, answerWith, resolve, connect } = options;
    const log = new DecisionLog(options.write, clock);
    const judge = new Judge(options);
    const record = (decided: Decided) => log.record(decided);
    const reach = new Reach({
      judge,
      clock,
      record,
      ...(resolve ? { resolve } : {}),
      ...(connect ? { connect } : {}),
    });
    this.#log = log;
    this.#policy = policy;
    this.#serve = { workload: policy.workload, reach, judge, record, clock, answerWith };
  }

  /** An HTTP proxy. */
  serveProxy(listener: Server): void {
    serveProxy(listener, this.#serve);
  }

  /** Questions for names over UDP. */
  serveDnsOverUdp(socket: UdpSocket): void {
    serveDnsOverUdp(socket, this.#serve);
  }

  /** Questions for names over TCP. */
  serveDnsOverTcp(listener: Server): void {
    serveDnsOverTcp(listener, this.#serve);
  }

  /** Connections of programs that know no proxy, whose TLS names the host; they are led to `port` of it. */
  serveDirectTls(listener: Server, port = 443): void {
    serveDirectTls(listener, port, this.#serve);
  }

  /** Requests of programs that know no proxy, whose `Host` names the host; they are led to `port` of it. */
  serveDirectHttp(listener: Server, port = 80): void {
    serveDirectHttp(listener, port, this.#serve);
  }

  /** Requests to the server of the workload. */
  serveIngress(listener: Server, ingress: Ingress): void {
    serveIngress(listener, { ...this.#serve, policy: this.#policy, ingress });
  }

  /** Writes what was counted and not written yet. */
  flush(): void {
    this.#log.flush();
  }
}
