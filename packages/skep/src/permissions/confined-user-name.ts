import { SkepError } from '@skep/core/errors/skep-error.ts';

/** Who a program is inside. Started by root these are numbers of the machine, else the starting user's own in disguise. */
export interface ConfinedUser {
  readonly uid: number;
  readonly gid: number;
}

/** What the kernel takes; the last number means "unchanged". */
const MAX_ID = 0xfffffffe;

/** How a person names one: `root`, `UID` or `UID:GID`. */
export const CONFINED_USER = /^(?:root|(\d{1,10})(?::(\d{1,10}))?)$/;

/** Reads `root` or `UID[:GID]`. Fails with `usage/invalid-value`. */
export function parseConfinedUser(text: string): ConfinedUser {
  if (text === 'root') return { uid: 0, gid: 0 };
  const [uid, gid] = (CONFINED_USER.exec(text)?.slice(1) ?? []).map(Number);
  if (uid !== undefined && uid <= MAX_ID && (Number.isNaN(gid) || (gid ?? 0) <= MAX_ID)) {
    return { uid, gid: gid === undefined || Number.isNaN(gid) ? uid : gid };
  }
  throw new SkepError('usage/invalid-value', {
    message: `${JSON.stringify(text)} is no user for the sandbox`,
    hint: 'give root, UID or UID:GID',
  });
}
