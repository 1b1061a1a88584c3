import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Attachment } from '../runtime.ts';

// What a kubelet answers to `attach` and `portforward`: the server's side of RFC 6455 with the channels of v4.channel.k8s.io. A
// cluster for tests has no kubelet; a real API server hands such connections on to this one.

/** Every pod that this kubelet runs. */
export interface RunningPod {
  /** Undefined where its server has ended. */
  readonly attach: () => Attachment | undefined;
  /** Where a port of the pod really is. */
  readonly portOf: (port: number) => number | undefined;
}

/** Answers an upgrade, of the kubelet's own address or of the API server's; other protocols, and pods that are not there, are refused. */
export function answerUpgrade(
  request: IncomingMessage,
  socket: Duplex,
  podNamed: (name: string) => RunningPod | undefined,
): void {
  const url = new URL(request.url ?? '/', 'http://kubelet');
  const [, name = '', asked] =
    /\/pods\/([^/]+)\/(attach|portforward)$/.exec(url.pathname) ?? kubeletPath(url.pathname);
  const pod = podNamed(name);
  const offered = String(request.headers['sec-websocket-protocol']);
  socket.on('error', () => socket.destroy());
  const attached = asked === 'attach' ? pod?.attach() : undefined;
  const port =
    asked === 'portforward' ? Number(url.searchParams.get('ports') ?? url.searchParams.get('port')) : 0;
  const target = port > 0 ? pod?.portOf(port) : undefined;
  if ((attached === undefined && target === undefined) || offered !== 'v4.channel.k8s.io') {
    socket.end('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n');
    return;
  }
  const key = String(request.headers['sec-websocket-key']);
  const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: ${accept}\r\nsec-websocket-protocol: ${offered}\r\n\r\n`,
  );
  if (attached !== undefined) speakStdio(socket, attached);
  else if (target !== undefined) forwardPort(socket, connect(target, '127.0.0.1'), port);
}

/** `/attach/NAMESPACE/POD/CONTAINER` and `/portForward/NAMESPACE/POD`, as the API server asks a kubelet. */
function kubeletPath(path: string): readonly string[] {
  const [, asked = '', , name = ''] = path.split('/');
  return ['', name, asked.toLowerCase()];
}

function speakStdio(socket: Duplex, attached: Attachment): void {
  const { stdin, stdout } = attached;
  stdout.on('data', (chunk: Buffer) => {
    for (let at = 0; at < chunk.length; at += 32_768)
      socket.write(message(1, chunk.subarray(at, at + 32_768)));
  });
  stdout.once('end', () => {
    socket.write(message(3, Buffer.from('{"metadata":{},"status":"Success"}')));
    socket.end(Buffer.from([0x88, 0]));
  });
  onMessages(socket, (channel, content) => void (channel === 0 && stdin.write(content)));
  socket.once('close', () => attached.close());
}

function forwardPort(socket: Duplex, target: Duplex, port: number): void {
  const number = Buffer.alloc(2);
  number.writeUInt16LE(port);
  socket.write(message(0, number));
  socket.write(message(1, number));
  target.on('data', (chunk: Buffer) => void socket.write(message(0, chunk)));
  target.on('error', () => target.destroy()).once('close', () => socket.end(Buffer.from([0x88, 0])));
  onMessages(socket, (channel, content) => void (channel === 0 && target.write(content)));
  socket.once('close', () => target.destroy());
}

function onMessages(socket: Duplex, take: (channel: number, content: Buffer) => void): void {
  let held = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    held = Buffer.concat([held, chunk]);
    for (;;) {
      const [first = 0, second = 0] = held;
      const short = second & 0x7f;
      const wide = short === 127 ? 8 : short === 126 ? 2 : 0;
      if (held.length < 2 + wide + 4) return;
      const length = wide === 8 ? Number(held.readBigUInt64BE(2)) : wide === 2 ? held.readUInt16BE(2) : short;
      const start = 2 + wide + 4;
      if (held.length < start + length) return;
      const mask = held.subarray(start - 4, start);
      const payload = held.subarray(start, start + length).map((byte, at) => byte ^ (mask[at & 3] ?? 0));
      held = held.subarray(start + length);
      const kind = first & 0x0f;
      if (kind === 9) socket.write(frame(0x8a, Buffer.from(payload)));
      if (kind === 8) socket.end();
      if (kind === 2) take(payload[0] ?? 0, Buffer.from(payload.subarray(1)));
    }
  });
}

function message(channel: number, content: Buffer): Buffer {
  return frame(0x82, Buffer.concat([Buffer.of(channel), content]));
}

function frame(first: number, payload: Buffer): Buffer {
  const { length } = payload;
  const head = Buffer.alloc(length > 0xffff ? 10 : length > 125 ? 4 : 2);
  head[0] = first;
  head[1] = head.length === 10 ? 127 : head.length === 4 ? 126 : length;
  if (head.length === 4) head.writeUInt16BE(length, 2);
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([head, payload]);
}
