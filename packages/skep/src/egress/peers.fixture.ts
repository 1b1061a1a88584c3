import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import {
  createServer as createHttpServer,
  type IncomingMessage,
  request,
  type RequestListener,
} from 'node:http';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { connect as connectTls, type ConnectionOptions } from 'node:tls';
import { openGateway } from './gateway.fixture.ts';

/** Servers and clients on loopback that end with their test. */
export class Peers {
  readonly #ends: (() => unknown)[] = [];

  async gateway(...args: Parameters<typeof openGateway>) {
    const gateway = await openGateway(...args);
    this.#ends.push(() => gateway[Symbol.asyncDispose]());
    return gateway;
  }

  /** Listens; gives the port. */
  async listen(server: Server): Promise<number> {
    const sockets = new Set<Socket>();
    server.on('connection', (socket: Socket) => void sockets.add(socket));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    this.#ends.push(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
      return once(server, 'close');
    });
    return (server.address() as AddressInfo).port;
  }

  http(handler: (...args: Parameters<RequestListener>) => unknown): Promise<number> {
    return this.listen(createHttpServer((req, res) => void handler(req, res)));
  }

  /** Each connection is handed over; both directions close by themselves only. */
  tcp(handler: (socket: Socket) => unknown): Promise<number> {
    const handled = (socket: Socket) => {
      socket.on('error', () => {});
      handler(socket);
    };
    return this.listen(createServer({ allowHalfOpen: true }, handled));
  }

  connect(port: number): Socket {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    socket.on('error', () => {});
    this.#ends.push(() => socket.destroy());
    return socket;
  }

  /** Sends this on a connection, and gives everything that comes back until the other side ends. */
  say(port: number, said: string | Uint8Array): Promise<string> {
    const socket = this.connect(port);
    socket.write(said);
    return text(socket);
  }

  /** Through a proxy as curl does for http; without `url` in absolute form, to a server. */
  async ask(port: number, url: string, headers: Readonly<Record<string, string>> = {}) {
    const asked = request({ host: '127.0.0.1', port, path: url, headers, agent: false }).end();
    const [reply] = (await once(asked, 'response')) as [IncomingMessage];
    return { status: reply.statusCode, headers: reply.headers, body: await text(reply) };
  }

  /** A connection to `host:port` through the proxy, and what came after its answer. */
  async tunnel(proxy: number, target: string) {
    const asked = request({
      host: '127.0.0.1',
      port: proxy,
      method: 'CONNECT',
      path: target,
      agent: false,
    }).end();
    const [reply, socket, head] = (await once(asked, 'connect')) as [IncomingMessage, Socket, Buffer];
    this.#ends.push(() => socket.destroy());
    socket.on('error', () => {});
    return { status: reply.statusCode, socket, head };
  }

  /** The first bytes of a client of Node's, which is OpenSSL's. */
  async hello(options: ConnectionOptions): Promise<Buffer> {
    const hello = Promise.withResolvers<Buffer>();
    const port = await this.tcp((socket) => void socket.once('data', hello.resolve));
    connectTls({ socket: this.connect(port), ...options }).on('error', () => {});
    return hello.promise;
  }

  async end(): Promise<void> {
    for (const end of this.#ends.splice(0).toReversed()) await end();
  }
}

/** What a server says that asks for the ClientHello once more (RFC 8446 §4.1.4). */
export const RETRY_REQUEST = Buffer.from(
  `160303002c020000280303${createHash('sha256').update('HelloRetryRequest').digest('hex')}00130100`,
  'hex',
);

/** A key and a certificate of its own for these names, in PEM. */
export function certificateFor(...names: readonly string[]): { readonly key: string; readonly cert: string } {
  const folder = mkdtempSync(path.join(tmpdir(), 'skep-certificate-'));
  try {
    const key = path.join(folder, 'key.pem');
    const cert = path.join(folder, 'cert.pem');
    const alternatives = `subjectAltName=${names.map((name) => `DNS:${name}`).join()}`;
    const subject = ['-subj', `/CN=${names[0]}`, '-addext', alternatives];
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'];
    execFileSync('openssl', ['req', '-x509', ...curve, '-nodes', '-keyout', key, '-out', cert, ...subject], {
      stdio: 'ignore',
    });
    return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
