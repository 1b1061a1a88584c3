import net from 'node:net';
import { networkInterfaces } from 'node:os';

/** An address of this machine that others could use. */
export function lanAddress(): string | undefined {
  const all = Object.values(networkInterfaces()).flatMap((one) => one ?? []);
  return all.find((one) => one.family === 'IPv4' && !one.internal)?.address;
}

/** A TCP listener that ends every connection at once. */
export async function listening(where: net.ListenOptions): Promise<net.Server> {
  const server = net.createServer((socket) => void socket.end());
  await new Promise<void>((resolve) => void server.listen(where, resolve));
  return server;
}

export const portOf = (server: net.Server): number => (server.address() as net.AddressInfo).port;

export async function freePort(): Promise<number> {
  const server = await listening({ port: 0, host: '127.0.0.1' });
  const port = portOf(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}
