import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, realpathSync } from 'node:fs';
import { readdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { removeEmpty } from '@skep/core/files/atomic-write.ts';
import type { Places } from '@skep/core/files/places.ts';
import { writeFailure } from '@skep/core/files/write-failure.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { members, optional, text, wholeNumber, type ShapeType } from '@skep/core/settings/shape.ts';
import { whyNotPrivate } from './private-directory.ts';

/**
 * Where the supervisor of a state directory listens and which process it is. Written by the holder of the supervisor's
 * lock, read by every command: what the environment says of runtime or temporary directories never matters.
 */
export type Address = ShapeType<typeof addressShape>;

const process = { pid: wholeNumber(1), started: text };
const addressShape = members({
  ...process,
  /** Real path of the state directory: in a copy of it the address is another's. */
  state: text,
  socket: text,
  /** The process that starts the supervisor again when it was killed; absent where there is none. */
  watcher: optional(members(process)),
});

const SOCKET_ENDING = '.sock';
const fileOf = (places: Places): string => join(places.supervisorDir, 'address.json');

/** Whoever holds it is the supervisor. */
export const supervisorLock = (places: Places): string => join(places.locksDir, 'supervisor.lock');

/**
 * Undefined when there is none, or a damaged one, which its supervisor writes again, or another state directory's, or one
 * that is not this user's: who could write it could choose which processes are sent signals.
 */
export function readAddress(places: Places, uid: number | undefined): Address | undefined {
  try {
    const address = addressShape(JSON.parse(readOwn(places, uid)), () => {
      throw new SkepError('supervisor/protocol');
    });
    return address.state === realOf(places.stateDir) ? address : undefined;
  } catch {
    return undefined;
  }
}

/** Fails, however, when the file or its directory is a link or somebody else's. Asks at once: each command begins with it. */
function readOwn(places: Places, uid: number | undefined): string {
  const directory = lstatSync(places.supervisorDir);
  // A pipe in its place must not make us wait.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  using opened = new DisposableStack();
  const file = opened.adopt(openSync(fileOf(places), flags), closeSync);
  const found = fstatSync(file);
  const own = uid === undefined || (found.uid === uid && directory.uid === uid);
  if (own && found.isFile() && directory.isDirectory()) return readFileSync(file, 'utf8');
  throw new SkepError('supervisor/unreachable', { message: 'the address is not one of this user' });
}

/** Not durable on purpose: after a crash of the machine nobody listens there. Fails with `file/write-failed`, and leaves nothing then. */
export async function writeAddress(places: Places, address: Address): Promise<void> {
  const file = fileOf(places);
  const temporary = `${file}.${address.pid}`;
  try {
    await writeFile(temporary, JSON.stringify(address), { mode: 0o600 });
    await rename(temporary, file);
  } catch (cause) {
    await rm(temporary, { force: true });
    throw writeFailure(`cannot write "${file}"`, file, cause);
  }
}

/**
 * Removes what dead supervisors left: their address, their sockets, and a directory one of them made elsewhere. Only for
 * the holder of the supervisor's lock.
 */
export async function clearAddress(places: Places, uid: number | undefined): Promise<void> {
  const left = readAddress(places, uid);
  if (left) await removeSocket(left.socket, places, uid);
  for (const name of await readdir(places.supervisorDir).catch(() => [])) {
    if (name.endsWith(SOCKET_ENDING)) await rm(join(places.supervisorDir, name), { force: true });
  }
  await rm(fileOf(places), { force: true });
}

/** Removes the address when it is still the one of `socket`, and the directory when nothing else is in it. */
export async function forgetAddress(places: Places, socket: string, uid: number | undefined): Promise<void> {
  if (readAddress(places, uid)?.socket === socket) await rm(fileOf(places), { force: true });
  await removeEmpty(places.supervisorDir);
}

/** Removes a socket, and the directory that was made for it alone. What is not this user's is left. */
export async function removeSocket(socket: string, places: Places, uid: number | undefined): Promise<void> {
  const directory = dirname(socket);
  if (!socket.endsWith(SOCKET_ENDING) || whyNotPrivate(directory, uid) !== undefined) return;
  await rm(socket, { force: true });
  if (directory === places.supervisorDir || !basename(directory).startsWith(SHORT_PREFIX)) return;
  await removeEmpty(directory);
}

/** Begins the name of a directory that a supervisor makes for its socket alone. */
export const SHORT_PREFIX = 'skep-';

/** A name that no other supervisor uses: whoever closes a socket removes it by name. */
export const socketName = (id: string): string => `${id}${SOCKET_ENDING}`;

/** What a supervisor and its clients must have in common: real paths of what they read and write. */
export function whatIsKept({ stateDir, dataDir }: Places) {
  return { state: realOf(stateDir), data: realOf(dataDir) };
}

function realOf(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    return path;
  }
}
