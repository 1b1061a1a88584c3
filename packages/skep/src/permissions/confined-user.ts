import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { ifThere } from '@skep/core/files/errno.ts';
import { parseConfinedUser, type ConfinedUser } from './confined-user-name.ts';
import type { Mount } from './mounts.ts';

const ORDINARY: ConfinedUser = { uid: 1000, gid: 1000 };
/** Numbers that no system hands out: between the ranges that systemd and the distributions use. */
const FIRST_UNUSED = 60_706;
const UNUSED = 478;

/** In place of the name of each program that shares volumes, and no workload's name: they are one user (decision 0388). */
export const SHARING = 'volume://';

/** Whether the user is one of those that own nothing on this machine, and not that of all which share volumes. */
export function isUnusedUser({ uid }: ConfinedUser): boolean {
  return uid >= FIRST_UNUSED && uid < FIRST_UNUSED + UNUSED && uid !== unusedUser(SHARING);
}

/** The number of such a user, always the same for a name. */
const unusedUser = (name: string): number =>
  FIRST_UNUSED + (createHash('sha256').update(name).digest().readUInt32BE() % UNUSED);

export interface UserChoice {
  readonly asRoot: boolean;
  /** Whose: programs of different names get different users. */
  readonly name: string;
  readonly mounts: readonly Mount[];
  /** The person's own word. */
  readonly wanted?: string | undefined;
}

/**
 * Who a program runs as: whom the person named, else never root. Started by root it is the owner of what it may write (or
 * of what only its owner may read), so that mounts work, else a user that owns nothing on this machine.
 */
export async function confinedUser({ asRoot, name, mounts, wanted }: UserChoice): Promise<ConfinedUser> {
  if (wanted !== undefined && wanted !== '') return parseConfinedUser(wanted);
  if (!asRoot) return ORDINARY;
  for (const mount of mounts) {
    const found = await rights(mount);
    if (found === undefined) continue;
    const { uid, gid, mode } = found;
    if (uid !== 0 && (!mount.readOnly || (mode & 0o004) === 0)) return { uid, gid };
  }
  const uid = unusedUser(name);
  return { uid, gid: uid };
}

/** Undefined for a source that is not there, which is refused with its name when the workload is made. */
function rights({ source }: Mount) {
  return ifThere(stat(source), 'ENOTDIR');
}

/** The mounts that a user may not use as they were asked for, a phrase each. */
export async function closedMounts(user: ConfinedUser, mounts: readonly Mount[]): Promise<readonly string[]> {
  if (user.uid === 0) return [];
  const closed = await Promise.all(
    mounts.map(async (mount) => {
      const found = await rights(mount);
      if (found === undefined) return undefined;
      const { uid, gid, mode } = found;
      const granted = uid === user.uid ? mode >> 6 : gid === user.gid ? mode >> 3 : mode;
      if ((granted & 4) === 0) return `may not read "${mount.source}"`;
      return mount.readOnly || (granted & 2) !== 0 ? undefined : `may only read "${mount.source}"`;
    }),
  );
  return closed.filter((one) => one !== undefined);
}

/**
 * The ordinary user of a container whose image says root, by the rule of the sandbox: the owner of what it may write, else
 * one that owns nothing. Undefined where that user could not use a mount.
 */
export async function otherUser(name: string, mounts: readonly Mount[]): Promise<ConfinedUser | undefined> {
  const user = await confinedUser({ asRoot: true, name, mounts });
  return (await closedMounts(user, mounts)).length === 0 ? user : undefined;
}
