import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmod, lstat, mkdtemp } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { errnoOf } from '@skep/core/files/errno.ts';
import type { Log } from '@skep/core/log/log.ts';
import type { Places } from '@skep/core/files/places.ts';
import { whyNotWritten } from '@skep/core/files/write-failure.ts';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import {
  forgetAddress,
  readAddress,
  removeSocket,
  SHORT_PREFIX,
  socketName,
  writeAddress,
  type Address,
} from './address.ts';
import { ensureOwn, whyNotPrivate } from './private-directory.ts';

export interface DoorOptions {
  readonly places: Places;
  readonly platform: NodeJS.Platform;
  readonly uid: number | undefined;
  /** The process that listens, and who watches it. */
  readonly owner: Omit<Address, 'socket'>;
  readonly onConnection: (socket: Socket) => void;
  readonly log: Log;
}

/** The supervisor's socket. The caller holds the supervisor's lock. */
export interface Door {
  /** Listens anew when the socket or its address has been removed by others. */
  mend(): Promise<void>;
  /** Ends listening; removes the socket and, while it is this door's, the address. Connections go on. */
  close(): Promise<void>;
}

/** Longest path of a Unix socket, in bytes without the NUL that ends it (`sun_path` of unix(7) and unix(4)). */
const longestSocket = (platform: NodeJS.Platform): number => (platform === 'linux' ? 107 : 103);

/**
 * Listens in the state directory, or where that cannot be (a path too long, a file system without sockets or
 * permissions) in a new private directory for temporary files, and writes down where.
 */
export async function openDoor(options: DoorOptions): Promise<Door> {
  let open = await listen(options);
  return {
    async mend() {
      if (await isStanding(open.socket, options)) return;
      const gone = open;
      open = await listen(options);
      options.log.warn({ was: gone.socket, now: open.socket }, 'the socket was gone, listening anew');
      await shut(gone, options);
    },
    async close() {
      await shut(open, options);
      await forgetAddress(options.places, open.socket, options.uid);
    },
  };
}

interface Listening {
  readonly server: Server;
  readonly socket: string;
}

async function listen(options: DoorOptions): Promise<Listening> {
  const { places, uid, owner, platform } = options;
  await ensureOwn(places, uid);
  const failures: unknown[] = [];
  for await (const socket of candidates(options)) {
    const server = createServer(options.onConnection);
    try {
      await once(server.listen(socket), 'listening');
      if (platform !== 'win32') await chmod(socket, 0o600);
      await writeAddress(places, { ...owner, socket });
      server.on('error', (cause) => options.log.error({ err: cause }, 'a connection could not be accepted'));
      return { server, socket };
    } catch (error) {
      server.close();
      await removeSocket(socket, places, uid);
      failures.push(error);
    }
  }
  const [cause] = failures;
  // A full disk, most likely, and no matter of where to listen.
  if (cause instanceof SkepError && hasCode(cause, 'file/write-failed'))
    throw new SkepError('supervisor/unreachable', { message: cause.message, hint: cause.hint, cause });
  const { reason, ...next } = whyNotWritten(places.supervisorDir, errnoOf(cause));
  throw new SkepError('supervisor/unreachable', {
    message: `nowhere to listen: neither in "${places.supervisorDir}" nor in "${places.temp}" (${errnoOf(cause) === undefined ? 'their paths are too long' : reason})`,
    ...next,
    cause,
  });
}

async function* candidates({ places, platform, uid }: DoorOptions): AsyncGenerator<string, void, undefined> {
  const name = socketName(randomBytes(6).toString('hex'));
  if (platform === 'win32') {
    yield `\\\\.\\pipe\\skep-${name}`;
    return;
  }
  const fits = (path: string): boolean => Buffer.byteLength(path) <= longestSocket(platform);
  const own = join(places.supervisorDir, name);
  if (fits(own) && whyNotPrivate(places.supervisorDir, uid) === undefined) yield own;
  for (const base of new Set([places.temp, '/tmp'])) {
    const directory = await mkdtemp(join(base, SHORT_PREFIX)).catch(() => undefined);
    if (directory === undefined) continue;
    const short = join(directory, name);
    if (fits(short)) yield short;
    else await removeSocket(short, places, uid);
  }
}

/** True while clients find the socket: it is there, and the address says so. */
async function isStanding(socket: string, { places, platform, uid, owner }: DoorOptions): Promise<boolean> {
  const address = readAddress(places, uid);
  if (address?.socket !== socket || address.pid !== owner.pid) return false;
  if (platform === 'win32') return true;
  // Nobody dials one where others may enter.
  if (whyNotPrivate(dirname(socket), uid) !== undefined) return false;
  return lstat(socket).then(
    () => true,
    () => false,
  );
}

async function shut({ server, socket }: Listening, options: DoorOptions): Promise<void> {
  const { places, uid } = options;
  // Stops accepting at once; the callback would wait for connections.
  server.close();
  await removeSocket(socket, places, uid);
}
