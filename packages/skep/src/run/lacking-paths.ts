import { lstat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Mounted, PathRight } from '../permissions/change-paths.ts';
import { offeredPath } from '../permissions/offer-path.ts';
import { silentSource } from '../permissions/silent-source.ts';
import type { SeenFiles } from '../runtime/runtime.ts';

/** As many paths as are looked for on this machine, and as are then judged: a server can ask for any number. */
const MAX_LOOKED_FOR = 500;
const MAX_JUDGED = 40;
/** Longer ones are no person's, and together too long for one command line. */
const MAX_CHARACTERS = 1_000;
/** To look there asks a machine of the server's choice (autofs(5), AFS). */
const ELSEWHERE = /^\/(?:net|misc|afs)\//;

export interface Lacking {
  /** What may be proposed, each path once and none below another. */
  readonly rights: readonly PathRight[];
  /** Paths that are there on this machine and are given to no server without a word of its person. */
  readonly kept: readonly string[];
  /** There were more than were looked at. */
  readonly more: boolean;
}

/**
 * The paths that a server asked for and did not find, and that are there on this machine. Several below one directory become
 * that directory, if it may be proposed; one that was to be made becomes the directory that it was to be made in.
 */
export async function lackingPaths(files: SeenFiles, config: Mounted, home: string): Promise<Lacking> {
  const asked = [...files.paths].filter(([, { there }]) => !there);
  const sensible = asked.filter(([path]) => path.length <= MAX_CHARACTERS && !ELSEWHERE.test(path));
  const wanted = sensible.slice(0, MAX_LOOKED_FOR);
  const found: { readonly path: string; readonly wantsWrite: boolean }[] = [];
  if ((await silentSource(wanted.map(([path]) => path))) !== undefined)
    return { rights: [], kept: [], more: true };
  for (const [path, { changes: wantsWrite }] of wanted) {
    if (await isHere(path)) found.push({ path, wantsWrite });
    else if (wantsWrite && (await isHere(dirname(path)))) found.push({ path: dirname(path), wantsWrite });
  }
  const rights = new Map<string, PathRight>();
  const kept = new Set<string>();
  for (const told of found.slice(0, MAX_JUDGED)) {
    const right = await offeredPath(told, config, home);
    if (right === undefined) kept.add(told.path);
    else rights.set(right.path, merged(right, rights.get(right.path)));
  }
  const offer = (path: string, wantsWrite: boolean): Promise<PathRight | undefined> =>
    offeredPath({ path, wantsWrite }, config, home);
  return {
    rights: await together([...rights.values()], offer),
    kept: [...kept],
    more: asked.length > wanted.length || found.length > MAX_JUDGED,
  };
}

const isHere = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );

function merged(one: PathRight, other: PathRight | undefined): PathRight {
  return { ...one, readOnly: one.readOnly !== false && other?.readOnly !== false };
}

/** Each path once, none below another, and several of one directory as that directory where it is offered. */
async function together(
  rights: readonly PathRight[],
  offer: (path: string, wantsWrite: boolean) => Promise<PathRight | undefined>,
): Promise<readonly PathRight[]> {
  const all = new Map(rights.map((right) => [right.path, right]));
  for (const [directory, inside] of Map.groupBy(rights, ({ path }) => dirname(path))) {
    if (inside.length < 2) continue;
    const wantsWrite = inside.some(({ readOnly }) => readOnly === false);
    const whole = await offer(directory, wantsWrite);
    if (whole !== undefined) all.set(directory, merged(whole, all.get(directory)));
  }
  const isBelow = (path: string, above: string): boolean => path.startsWith(`${above}/`);
  const tops = [...all.values()].filter(({ path }) => ![...all.keys()].some((above) => isBelow(path, above)));
  return tops
    .map((top) =>
      [...all.values()]
        .filter(({ path }) => isBelow(path, top.path))
        .reduce<PathRight>((one, other) => merged(one, other), top),
    )
    .toSorted((one, other) => (one.path < other.path ? -1 : 1));
}
