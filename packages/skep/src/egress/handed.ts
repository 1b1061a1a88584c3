import { Socket as UdpSocket } from 'node:dgram';
import { Server } from 'node:net';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Gateway } from './gateway.ts';
import type { Service } from './gateway-config.ts';
import type { Ingress } from './serve-ingress.ts';
import { serveStream } from './serve-stream.ts';

/** What goes along with a socket over Node's channel between processes; `all` comes last and alone. */
export type Handed =
  | { readonly serve: Service }
  /** A socket outside, and where it leads inside. */
  | { readonly entry: Ingress }
  | { readonly all: true };

/** This end of the channel to whoever started the process. */
export type Channel = Pick<NodeJS.Process, 'on' | 'send'>;

/** Takes what the process is sent, until `all`. */
export async function receive(
  channel: Channel,
  take: (handed: Handed, socket: unknown) => void,
): Promise<void> {
  await new Promise<void>((resolve) => {
    channel.on('message', (handed: Handed, socket: unknown) => {
      take(handed, socket);
      if ('all' in handed) resolve();
    });
  });
}

/** Resolves when it is on its way; then this process may let go of the socket. */
export async function hand(channel: Channel, handed: Handed, socket?: Server | UdpSocket): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    if (channel.send === undefined) throw noChannel();
    channel.send(handed, socket, {}, (error) => (error === null ? resolve() : reject(error)));
  });
}

/** Has the gateway serve what it is handed, and says so when it has everything. Fails with `config/invalid`. */
export async function serveHanded(gateway: Gateway, channel: Channel): Promise<void> {
  await receive(channel, (handed, socket) => {
    if (!('serve' in handed)) return;
    if (socket instanceof Server) serveStream(gateway, handed.serve, socket);
    else if (handed.serve === 'dns' && socket instanceof UdpSocket) gateway.serveDnsOverUdp(socket);
    else throw noChannel();
  });
  await hand(channel, { all: true });
}

const noChannel = () =>
  new SkepError('config/invalid', { message: 'SKEP_GATEWAY: nobody hands over sockets' });
