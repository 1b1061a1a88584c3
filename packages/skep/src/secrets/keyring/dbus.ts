import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { posix } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import {
  decodeMessage,
  DESTINATION,
  encodeCall,
  ERROR,
  ERROR_NAME,
  INTERFACE,
  MAX_MESSAGE_BYTES,
  MEMBER,
  PATH,
  REPLY_SERIAL,
  textOf,
  type Message,
  type Value,
} from './dbus-wire.ts';

export interface Call {
  readonly destination: string;
  readonly path: string;
  readonly interface: string;
  readonly member: string;
  readonly signature?: string;
  readonly values?: readonly Value[];
}

/** A connection to the bus of the user's session. */
export interface Bus extends Disposable {
  /** What the method answers. Fails with `secrets/keyring`. */
  call(call: Call): Promise<readonly Value[]>;
}

const BUS = 'org.freedesktop.DBus';

/** Where the user's session has its bus ("Server Addresses"); undefined where it has none. */
export function busAddress(env: Readonly<Record<string, string | undefined>>): string | undefined {
  const given = env['DBUS_SESSION_BUS_ADDRESS'];
  const directory = env['XDG_RUNTIME_DIR'];
  if (given === undefined || given === '') {
    return directory === undefined || !posix.isAbsolute(directory) ? undefined : posix.join(directory, 'bus');
  }
  return given
    .split(';')
    .map(socketOf)
    .find((socket) => socket !== undefined);
}

function socketOf(address: string): string | undefined {
  if (!address.startsWith('unix:')) return undefined;
  const pairs = address
    .slice('unix:'.length)
    .split(',')
    .map((pair) => pair.split('='));
  const { path, abstract } = Object.fromEntries(pairs) as Record<string, string | undefined>;
  const written = path ?? (abstract === undefined ? undefined : `\0${abstract}`);
  // Bytes that are no plain ones are written as %XX.
  return written?.replaceAll(/%([\da-f]{2})/gi, (_all, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

/** Connects and signs in as this user. Fails with `secrets/keyring` when the bus does not answer in time. */
export async function openBus(socketPath: string, uid: number, waitMs: number): Promise<Bus> {
  const socket = connect(socketPath);
  // A message is small, and a broken connection is heard of where an answer is waited for.
  socket.on('error', () => {});
  const limit = setTimeout(() => socket.destroy(new Error('no answer in time')), waitMs);
  try {
    await once(socket, 'connect');
    const reader = new Answers(socket);
    const name = Buffer.from(String(uid)).toString('hex');
    socket.write(`\0AUTH EXTERNAL ${name}\r\n`);
    const answer = await reader.line();
    if (!answer.startsWith('OK ')) throw unreachable(new Error('the bus does not know this user'));
    socket.write('BEGIN\r\n');
    const bus = new OpenBus(socket, reader, limit);
    await bus.call({ destination: BUS, path: '/org/freedesktop/DBus', interface: BUS, member: 'Hello' });
    return bus;
  } catch (error) {
    clearTimeout(limit);
    socket.destroy();
    throw error instanceof SkepError ? error : unreachable(error);
  }
}

function unreachable(cause: unknown): SkepError {
  const why = cause instanceof Error ? cause.message : 'no reason given';
  return new SkepError('secrets/keyring', {
    message: `the bus of this session does not answer (${why})`,
    cause,
  });
}

class OpenBus implements Bus {
  readonly #socket: Socket;
  readonly #answers: Answers;
  readonly #limit: NodeJS.Timeout;
  #serial = 0;

  constructor(socket: Socket, answers: Answers, limit: NodeJS.Timeout) {
    this.#socket = socket;
    this.#answers = answers;
    this.#limit = limit;
  }

  async call({ signature = '', values = [], ...to }: Call): Promise<readonly Value[]> {
    this.#serial += 1;
    const serial = this.#serial;
    const fields = new Map<number, Value>([
      [PATH, to.path],
      [INTERFACE, to.interface],
      [MEMBER, to.member],
      [DESTINATION, to.destination],
    ]);
    this.#socket.write(encodeCall(serial, fields, signature, values));
    for (;;) {
      const { type, fields: answered, body } = await this.#answers.message();
      if (answered.get(REPLY_SERIAL) !== serial) continue;
      if (type !== ERROR) return body;
      const name = textOf(answered.get(ERROR_NAME));
      throw new SkepError('secrets/keyring', {
        message: `the Secret Service refuses: ${name}`,
        detail: { name },
      });
    }
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#limit);
    this.#socket.destroy();
  }
}

/** What comes from the bus: first lines, then messages. Asked for one at a time. */
class Answers {
  readonly #chunks: AsyncIterator<unknown>;
  #bytes: Buffer = Buffer.alloc(0);

  constructor(socket: Socket) {
    this.#chunks = socket[Symbol.asyncIterator]();
  }

  async line(): Promise<string> {
    return this.#next((bytes) => {
      const end = bytes.indexOf('\r\n');
      return end === -1 ? undefined : { found: bytes.toString('latin1', 0, end), length: end + 2 };
    });
  }

  async message(): Promise<Message> {
    return this.#next((bytes) => {
      const decoded = decodeMessage(bytes);
      return decoded && { found: decoded.message, length: decoded.length };
    });
  }

  async #next<T>(read: (bytes: Buffer) => { found: T; length: number } | undefined): Promise<T> {
    for (;;) {
      const some = read(this.#bytes);
      if (some) {
        this.#bytes = this.#bytes.subarray(some.length);
        return some.found;
      }
      if (this.#bytes.length > MAX_MESSAGE_BYTES) throw unreachable(new Error('it says too much'));
      this.#bytes = Buffer.concat([this.#bytes, await this.#chunk()]);
    }
  }

  async #chunk(): Promise<Buffer> {
    try {
      const { value, done } = await this.#chunks.next();
      if (done !== true) return value as Buffer;
    } catch (cause) {
      throw unreachable(cause);
    }
    throw unreachable(new Error('it hung up'));
  }
}
