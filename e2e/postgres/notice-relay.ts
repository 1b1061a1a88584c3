import { once } from 'node:events';
import net from 'node:net';

export interface NoticeRelay {
  readonly port: number;
  /** Notifications that did not get through. */
  readonly swallowed: number;
  /** How often the server was waited for. */
  readonly roundTrips: number;
  /** How many connections the server has said anything on since this was asked last. */
  spokenOn(): number;
  /** Keeps the next notification from whoever is connected through here. */
  swallowNext(): void;
  close(): Promise<void>;
}

/** NotificationResponse (PostgreSQL manual, "Message Formats"). */
const NOTIFICATION = 'A'.charCodeAt(0);
/** ReadyForQuery: the server waits for what the client asks next. */
const READY = 'Z'.charCodeAt(0);
/** Type and length. */
const HEAD_BYTES = 5;

/** Passes connections without TLS on to a database server, and loses a notification when it is told to. */
export async function noticeRelay(serverPort: number): Promise<NoticeRelay> {
  const open = new Set<net.Socket>();
  const state = { armed: false, swallowed: 0, roundTrips: 0 };
  const spoken = new Set<net.Socket>();
  const passes = (type: number | undefined): boolean => {
    if (type === READY) state.roundTrips += 1;
    if (type !== NOTIFICATION || !state.armed) return true;
    state.armed = false;
    state.swallowed += 1;
    return false;
  };
  const server = net.createServer((near) => {
    const far = net.createConnection({ host: '127.0.0.1', port: serverPort });
    for (const socket of [near, far]) {
      open.add(socket);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => {
        open.delete(socket);
        (socket === near ? far : near).destroy();
      });
    }
    near.pipe(far);
    let rest: Buffer = Buffer.alloc(0);
    far.on('data', (chunk) => {
      spoken.add(far);
      rest = Buffer.concat([rest, chunk]);
      while (rest.length >= HEAD_BYTES && rest.length > rest.readUInt32BE(1)) {
        const end = 1 + rest.readUInt32BE(1);
        if (passes(rest[0])) near.write(rest.subarray(0, end));
        rest = rest.subarray(end);
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    spokenOn: () => {
      const { size } = spoken;
      spoken.clear();
      return size;
    },
    get swallowed() {
      return state.swallowed;
    },
    get roundTrips() {
      return state.roundTrips;
    },
    swallowNext: () => (state.armed = true),
    close: async () => {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
