import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect, createServer, Server, type Socket } from 'node:net';
import type { Gateway } from './gateway.ts';
import type { GatewayConfig } from './gateway-config.ts';
import { hand, receive, type Channel } from './handed.ts';
import { joinSockets } from './join-sockets.ts';
import type { Ingress } from './serve-ingress.ts';

/**
 * Inside the network of a workload: opens the sockets of its gateway and hands them over. Serves the entries that it is
 * handed itself, because only from here the server is reached; answers how many those are.
 */
export async function openInside(config: GatewayConfig, gateway: Gateway, channel: Channel): Promise<number> {
  let entries = 0;
  const received = receive(channel, (handed, listener) => {
    if (!('entry' in handed) || !(listener instanceof Server)) return;
    const { entry } = handed;
    entries += 1;
    if (config.judgesEntries === true) gateway.serveIngress(listener, entry);
    else listener.on('connection', (client) => passOnTo(entry, client));
  });
  for (const { serve, host, port } of config.listeners) {
    const server = createServer({ allowHalfOpen: true });
    server.listen(port, host);
    await once(server, 'listening');
    await hand(channel, { serve }, server);
    // The gateway has a copy, and nobody else may take connections.
    server.close();
    if (serve !== 'dns') continue;
    const socket = createSocket('udp4');
    socket.bind(port, host);
    await once(socket, 'listening');
    await hand(channel, { serve }, socket);
    socket.close();
  }
  await received;
  await hand(channel, { all: true });
  return entries;
}

function passOnTo({ host, port }: Ingress, client: Socket): void {
  client.allowHalfOpen = true;
  joinSockets(client, connect({ host, port, allowHalfOpen: true }));
}
