import { realpath, stat } from 'node:fs/promises';
import { normalize } from 'node:path';
import { isSecretName } from '@skep/core/log/redact.ts';
import { permitPath, type Mounted, type PathRight } from './change-paths.ts';
import { profileMounts } from './profile.ts';
import { requireAnswers } from './silent-source.ts';
import type { ToldPath } from './told-lacks.ts';

/** What a shell takes without quotes, and a person reads without being misled. */
const PLAIN = /^\/[\w./@+,-]{1,300}$/;
/** True for a path that can be shown and pasted. */
export const isPlainPath = (path: string): boolean => PLAIN.test(path);

/** The system's own, whose content no server needs from this machine, and where a look asks another machine (autofs(5)). */
const SYSTEM =
  /^\/(?:net|misc|afs|bin|boot|dev|etc|lib|lib32|lib64|libx32|proc|root|run|sbin|sys|usr|var|System|Library|private|Applications)(?:\/|$)/;
/** Names of files that hold keys. */
const KEYS = /^id_|\.(?:pem|key|p12|pfx|kdbx|asc|gpg|ovpn)$/i;

/**
 * The path of this machine that a server seems to lack, if it may be offered to a person: one that is there, is an ordinary
 * file or directory, and is neither the system's, nor the home directory or above it, nor hidden, nor a secret by its name,
 * nor shown to the server already; where a link leads counts as well. Undefined for all others.
 */
export async function offeredPath(
  { path: told, wantsWrite }: ToldPath,
  config: Mounted,
  home: string,
): Promise<PathRight | undefined> {
  const path = sourceOf(told, config);
  const homes = [home, await realpath(home).catch(() => home)];
  if (path === undefined || !isOfferable(path, homes)) return undefined;
  try {
    await requireAnswers([{ source: path }]);
    const real = await realpath(path);
    const found = await stat(real);
    if (!isOfferable(real, homes) || !(found.isFile() || found.isDirectory())) return undefined;
    const right: PathRight = { is: 'path', path, readOnly: !wantsWrite };
    return permitPath(config, right).config === config ? undefined : right;
  } catch {
    // It is not there, not for this user, or cannot be mounted.
    return undefined;
  }
}

/** The path on this machine of one that a server named: what it sees elsewhere is mounted whole. */
function sourceOf(told: string, { permission_profile }: Mounted): string | undefined {
  if (!PLAIN.test(told) || normalize(told) !== told) return undefined;
  const mount = profileMounts(permission_profile, '/').find(
    ({ target }) => told === target || told.startsWith(`${target}/`),
  );
  return mount === undefined ? told.replace(/(?<=.)\/$/, '') : mount.source;
}

/** `homes`: the home directory by its name and by where that leads. */
function isOfferable(path: string, homes: readonly string[]): boolean {
  const inHome = homes.some((home) => path.startsWith(`${home}/`));
  if (!PLAIN.test(path) || homes.some((home) => path === home || home.startsWith(`${path}/`))) return false;
  if (SYSTEM.test(path) && !inHome) return false;
  const parts = path.split('/').filter((part) => part !== '');
  return (
    parts.length > 0 &&
    parts.every((part) => !part.startsWith('.') && !isSecretName(part) && !KEYS.test(part))
  );
}
