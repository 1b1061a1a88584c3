import { readdir, readFile, realpath, rename, rm, rmdir, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { errnoOf } from '@skep/core/files/errno.ts';
import type { Places } from '@skep/core/files/places.ts';
import { z } from 'zod';
import { whyNotPrivate } from './private-directory.ts';

const processSchema = z.object({ pid: z.int().positive(), started: z.string() });
const addressSchema = processSchema.extend({
  /** Real path of the state directory: in a copy of it the address is another's. */
  state: z.string(),
  socket: z.string(),
  /** The process that starts the supervisor again when it was killed; absent where there is none. */
  watcher: processSchema.exactOptional(),
});

/**
 * Where the supervisor of a state directory listens and which process it is. Written by the holder of the supervisor's
 * lock, read by every command: what the environment says of runtime or temporary directories never matters.
 */
export type Address = z.infer<typeof addressSchema>;

const SOCKET_ENDING = '.sock';
const fileOf = (places: Places): string => join(places.supervisorDir, 'address.json');

/** Undefined when there is none, or a damaged one, which its supervisor writes again, or another state directory's. */
export async function readAddress(places: Places): Promise<Address | undefined> {
  try {
    const address = addressSchema.parse(JSON.parse(await readFile(fileOf(places), 'utf8')));
    return address.state === (await realOf(places.stateDir)) ? address : undefined;
  } catch {
    return undefined;
  }
}

/** Not durable on purpose: after a crash of the machine nobody listens there. */
export async function writeAddress(places: Places, address: Address): Promise<void> {
  const temporary = `${fileOf(places)}.${String(address.pid)}`;
  await writeFile(temporary, JSON.stringify(address), { mode: 0o600 });
  await rename(temporary, fileOf(places));
}

/**
 * Removes what dead supervisors left: their address, their sockets, and a directory one of them made elsewhere. Only for
 * the holder of the supervisor's lock.
 */
export async function clearAddress(places: Places, uid: number | undefined): Promise<void> {
  const left = await readAddress(places);
  if (left) await removeSocket(left.socket, places, uid);
  for (const name of await readdir(places.supervisorDir).catch(() => [])) {
    if (name.endsWith(SOCKET_ENDING)) await rm(join(places.supervisorDir, name), { force: true });
  }
  await rm(fileOf(places), { force: true });
}

/** Removes the address when it is still the one of `socket`, and the directory when nothing else is in it. */
export async function forgetAddress(places: Places, socket: string): Promise<void> {
  if ((await readAddress(places))?.socket === socket) await rm(fileOf(places), { force: true });
  await removeEmpty(places.supervisorDir);
}

/** Removes a socket, and the directory that was made for it alone. What is not this user's is left. */
export async function removeSocket(socket: string, places: Places, uid: number | undefined): Promise<void> {
  const directory = dirname(socket);
  if (!socket.endsWith(SOCKET_ENDING) || (await whyNotPrivate(directory, uid)) !== undefined) return;
  await rm(socket, { force: true });
  if (directory === places.supervisorDir || !basename(directory).startsWith(SHORT_PREFIX)) return;
  await removeEmpty(directory);
}

async function removeEmpty(directory: string): Promise<void> {
  await rmdir(directory).catch((error: unknown) => {
    if (!['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(errnoOf(error) ?? '')) throw error;
  });
}

/** Begins the name of a directory that a supervisor makes for its socket alone. */
export const SHORT_PREFIX = 'skep-';

/** A name that no other supervisor uses: whoever closes a socket removes it by name. */
export const socketName = (id: string): string => `${id}${SOCKET_ENDING}`;

export interface Kept {
  /** Real paths of what this program reads and writes. */
  readonly state: string;
  readonly data: string;
}

/** What a supervisor and its clients must have in common. */
export async function whatIsKept({ stateDir, dataDir }: Places): Promise<Kept> {
  return { state: await realOf(stateDir), data: await realOf(dataDir) };
}

function realOf(path: string): Promise<string> {
  return realpath(path).catch(() => path);
}
