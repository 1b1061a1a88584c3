import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import type { Mount } from './mounts.ts';

/** Where every package finds what it kept, and is told so by XDG_DATA_HOME. */
export const DATA_PATH = '/data';

/** Servers that keep more are not known; a hostile entry could ask for thousands. */
export const MAX_DATA_PATHS = 8;
const PLAIN = /^(?:\/[A-Za-z0-9._@+-]+)+$/;
/** Directories of the system: what is mounted there hides what runs, also what a later version of the image has there. */
const SYSTEM =
  /^\/(?:proc|sys|dev|etc|(?:usr\/(?:local\/)?)?(?:bin|sbin|lib\w*)|boot|skep|tmp|run)(?:\/|$)|^\/(?:usr|usr\/local|var|home|root|opt|app|mnt|srv)$/;

/** True for an absolute path without detours that lies in no directory of the system, as catalogues and images declare it. */
export function isDataPath(text: string): boolean {
  return text.length <= 255 && PLAIN.test(text) && posix.normalize(text) === text && !SYSTEM.test(text);
}

export interface DataWishes {
  readonly isPackage: boolean;
  /** What the catalogue entry and the image declare, of any form. */
  readonly declared: readonly string[];
  /** What is mounted already, and decides. */
  readonly mounts: readonly Pick<Mount, 'target'>[];
}

/** The paths whose content a workload keeps: `/data` for packages, what is declared for images (docs/behaviour/run.md#data). */
export function chooseDataPaths({ isPackage, declared, mounts }: DataWishes): readonly string[] | undefined {
  const wished = isPackage ? [DATA_PATH] : declared.map(withoutSlash).filter(isDataPath);
  const chosen: string[] = [];
  for (const path of wished) {
    if (chosen.length === MAX_DATA_PATHS) break;
    const others = [...chosen, ...mounts.map(({ target }) => target)];
    if (!others.some((other) => isWithin(path, other) || isWithin(other, path))) chosen.push(path);
  }
  return chosen.length === 0 ? undefined : chosen;
}

const withoutSlash = (text: string): string => text.replace(/(?<=.)\/$/, '');

const isWithin = (path: string, directory: string): boolean =>
  path === directory || path.startsWith(directory === '/' ? '/' : `${directory}/`);

/** What the place of a path is called: readable, unique, and fit for a file name and a volume. */
export function partOf(path: string): string {
  const slug = path
    .slice(1)
    .replaceAll(/[^A-Za-z0-9]+/g, '-')
    .slice(0, 40);
  if (`/${slug}` === path) return slug;
  return `${slug}-${createHash('sha256').update(path).digest('hex').slice(0, 8)}`;
}
