import { once } from 'node:events';
import net from 'node:net';
import { TLSSocket } from 'node:tls';
import { type ReadToken, readToken } from '@skep/registry/store/postgres/rds-token.fixture.ts';

export interface RdsRelayOptions {
  readonly serverPort: number;
  /** PEM. */
  readonly key: string;
  readonly cert: string;
  readonly region: string;
  readonly accessKey: string;
  readonly secretKey: string;
  /** What the users' passwords on the real server are; nobody but the relay knows. */
  readonly password: string;
}

export interface RdsRelay {
  readonly port: number;
  /** Of every connection that got through. */
  readonly signIns: readonly ReadToken[];
  /** Why others did not. */
  readonly refusals: readonly string[];
  /** Ends every connection; from now on tokens that were made before are refused. */
  cut(): void;
  close(): Promise<void>;
}

/** PostgreSQL manual, "Message Formats". */
const SSL_REQUEST = 80_877_103;
const PASSWORD_MESSAGE = 'p'.charCodeAt(0);
const SECOND = 1000;

/**
 * What Amazon RDS puts before PostgreSQL, as far as a client sees it: TLS or nothing, a question for the password in the
 * clear, and a token as the answer. With a right one the relay signs in to the real server, by the user's real password.
 */
export async function rdsRelay(options: RdsRelayOptions): Promise<RdsRelay> {
  const open = new Set<net.Socket>();
  const state = { signIns: [] as ReadToken[], refusals: [] as string[], notBefore: 0 };
  const keep = <T extends net.Socket>(socket: T): T => {
    open.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => open.delete(socket));
    return socket;
  };
  const server = net.createServer((socket) => {
    signIn(keep(socket), { options, state, keep }).catch((error: unknown) => {
      state.refusals.push(error instanceof Error ? error.message : String(error));
      socket.destroy();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    signIns: state.signIns,
    refusals: state.refusals,
    cut: () => {
      // Tokens carry whole seconds.
      state.notBefore = Math.floor(Date.now() / SECOND + 1) * SECOND;
      for (const socket of open) socket.destroy();
    },
    close: async () => {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

interface Relay {
  readonly options: RdsRelayOptions;
  readonly state: { readonly signIns: ReadToken[]; readonly refusals: string[]; readonly notBefore: number };
  readonly keep: <T extends net.Socket>(socket: T) => T;
}

async function signIn(socket: net.Socket, { options, state, keep }: Relay): Promise<void> {
  const request = await startMessage(socket);
  if (request.readUInt32BE(4) !== SSL_REQUEST) throw new Error('no TLS');
  socket.write('S');
  const near = keep(new TLSSocket(socket, { isServer: true, key: options.key, cert: options.cert }));
  const start = await startMessage(near);
  const [, user] = /\0user\0([^\0]+)\0/.exec(start.subarray(7).toString()) ?? [];
  const far = keep(net.createConnection({ host: '127.0.0.1', port: options.serverPort }));
  for (const [one, other] of [
    [near, far],
    [far, near],
  ] as const)
    one.on('close', () => other.destroy());
  far.write(start);
  // The real server asks for a password in the clear too.
  far.pipe(near);
  const token = readToken(await passwordOf(near), options.secretKey);
  const why = refusal(token, user, { options, notBefore: state.notBefore });
  if (why !== undefined) {
    state.refusals.push(why);
    far.unpipe(near);
    near.end(errorResponse(`PAM authentication failed for user "${user ?? ''}"`));
    return;
  }
  state.signIns.push(token);
  far.write(message('p', `${options.password}\0`));
  near.pipe(far);
}

/** What is wrong with a token; undefined for a good one. */
function refusal(
  token: ReadToken,
  user: string | undefined,
  { options, notBefore }: { readonly options: RdsRelayOptions; readonly notBefore: number },
): string | undefined {
  const now = Date.now();
  const rules: Readonly<Record<string, boolean>> = {
    signature: token.isSigned,
    user: token.user === user,
    host: /^localhost:\d+$/.test(token.host),
    action: token.action === 'connect' && token.service === 'rds-db',
    region: token.region === options.region,
    key: token.accessKey === options.accessKey,
    expired: token.issued <= now && now < token.expires && token.expires - token.issued <= 900 * SECOND,
    'older than allowed': token.issued >= notBefore,
  };
  return Object.keys(rules).find((rule) => rules[rule] !== true);
}

/** The first message of a client has no type. */
async function startMessage(socket: net.Socket): Promise<Buffer> {
  const length = await read(socket, 4);
  return Buffer.concat([length, await read(socket, length.readUInt32BE(0) - 4)]);
}

async function passwordOf(socket: net.Socket): Promise<string> {
  const head = await read(socket, 5);
  if (head[0] !== PASSWORD_MESSAGE) throw new Error('no password message');
  return (await read(socket, head.readUInt32BE(1) - 4)).toString().replace(/\0$/, '');
}

async function read(socket: net.Socket, bytes: number): Promise<Buffer> {
  for (;;) {
    const chunk: unknown = socket.read(bytes);
    if (Buffer.isBuffer(chunk) && chunk.length === bytes) return chunk;
    if (socket.destroyed || socket.readableEnded || chunk !== null) throw new Error('ended early');
    // A socket that fails is destroyed by whoever keeps it.
    await Promise.race([once(socket, 'readable'), once(socket, 'close')]).catch(() => socket.destroy());
  }
}

function errorResponse(text: string): Buffer {
  return message('E', `SFATAL\0VFATAL\0C28000\0M${text}\0\0`);
}

function message(type: string, body: string): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(4 + Buffer.byteLength(body));
  return Buffer.concat([Buffer.from(type), length, Buffer.from(body)]);
}
