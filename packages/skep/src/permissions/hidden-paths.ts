import type { Dirent } from 'node:fs';
import { lstat, readdir, realpath, stat } from 'node:fs/promises';
import { join, posix, relative, sep } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import { readText } from '@skep/core/files/read-limited.ts';
import { isIgnored, parseIgnore, type Effort, type IgnorePatterns } from './gitignore.ts';
import type { Mount } from './mounts.ts';
import { requireAnswers } from './silent-source.ts';

export interface HideRequest {
  /** `~/.config/skep/skepignore` (docs/behaviour/run.md#ignore-files). */
  readonly file: string;
  /** False: the person does not want that one heeded. */
  readonly globally: boolean;
  readonly mounts: readonly Mount[];
}

/** Something in a mounted directory that the workload must not see, or not change. */
export interface HiddenPath {
  /** The mount it lies in. */
  readonly mount: Mount;
  /** On the host. */
  readonly source: string;
  /** Inside. */
  readonly target: string;
  /** What stands there instead: an empty file or directory; `itself` for an ignore file, which only may not be changed. */
  readonly shows: 'empty-file' | 'empty-directory' | 'itself';
}

/** The files in a mounted directory that say what of it must stay hidden. */
const LOCAL = ['.skepignore', 'skepignore'];
const MAX_BYTES = 64 * 1024;
/** So much is looked through, and so much found, before it is said that it is too much. */
const MAX_ENTRIES = 200_000;
const MAX_COMPARED = 20_000_000;
const MAX_STEPS = 30_000_000;
/** After so many steps whoever else waits for this process has a turn. */
const STEPS_AT_ONCE = 200_000;
const MAX_HIDDEN = 1000;
/** So much of a path stands in a message. */
const MAX_SHOWN = 300;

/**
 * What the user's ignore file, and those in the mounted directories, hide of these mounts as they are now, with the
 * meaning of gitignore(5) at any depth. A file in a mounted directory cannot take back what the user's own file hides,
 * because a server may have written it. A directory that cannot be looked into is hidden whole, and what a hidden link
 * leads to is hidden with it. Fails with `run/invalid-ignore-file`, or with `run/source-silent`.
 */
export async function findHidden({ file, globally, mounts }: HideRequest): Promise<readonly HiddenPath[]> {
  await requireAnswers(mounts);
  const own = globally && mounts.length > 0 ? await patternsOf(file) : undefined;
  const walk = new Walk(mounts);
  for (const mount of mounts) {
    const kind = await kindOf(mount.source);
    if (kind === 'absent' && own !== undefined && own.rules.length > 0) {
      // On the machine of a distant engine, perhaps.
      throw refused(
        `"${file}" names what must stay hidden, and mount source "${mount.source}" is not on this machine to be looked through`,
        'correct the path, or mount it as it is with --ignore-globally=false',
      );
    }
    if (kind !== 'directory') continue;
    const local: IgnorePatterns[] = [];
    for (const name of LOCAL) {
      const patterns = await patternsOf(join(mount.source, name), true);
      if (patterns === undefined) continue;
      local.push(patterns);
      if (!mount.readOnly) walk.add(mount, [name], 'itself');
    }
    const files = [...(own ? [own] : []), ...local];
    if (files.some(({ rules }) => rules.length > 0)) await walk.through(mount, files);
  }
  return walk.found;
}

class Walk {
  readonly #mounts: readonly Mount[];
  readonly #found = new Map<string, HiddenPath>();
  readonly #effort: Effort = { left: MAX_STEPS };
  #entries = 0;
  #compared = 0;
  #turnAt = MAX_STEPS - STEPS_AT_ONCE;

  constructor(mounts: readonly Mount[]) {
    this.#mounts = mounts;
  }

  /** In an order of their own: that of a directory may change, and with it what a workload is made from. */
  get found(): readonly HiddenPath[] {
    return [...this.#found.values()].toSorted((one, other) => (one.target < other.target ? -1 : 1));
  }

  add(mount: Mount, names: readonly string[], shows: HiddenPath['shows']): void {
    const source = join(mount.source, ...names);
    if (source.includes('\uFFFD')) {
      throw refused(`"${source}" is to be hidden, and its name is no valid text`, 'rename it');
    }
    const target = posix.join(mount.target, ...names);
    this.#found.set(target, { mount, source, target, shows });
    if (this.#found.size > MAX_HIDDEN) {
      throw refused(
        `more than ${MAX_HIDDEN} files and directories of "${mount.source}" are to be hidden`,
        'hide the directories that they lie in, or mount only what may be seen',
      );
    }
  }

  async through(
    mount: Mount,
    files: readonly IgnorePatterns[],
    above: readonly string[] = [],
  ): Promise<void> {
    const directory = join(mount.source, ...above);
    const entries = await entriesOf(directory);
    if (entries === undefined) return this.add(mount, above, 'empty-directory');
    this.#entries += entries.length;
    this.#compared += entries.length * files.reduce((sum, one) => sum + one.rules.length, 0);
    if (this.#entries > MAX_ENTRIES || this.#compared > MAX_COMPARED) throw tooMuch(mount);
    for (const entry of entries) {
      const names = [...above, entry.name];
      const isFolder = entry.isDirectory();
      if (above.length === 0 && LOCAL.includes(entry.name) && !isFolder) continue;
      if (await this.#isHidden(mount, files, { names, isFolder })) await this.#hide(mount, names, entry);
      else if (isFolder) await this.through(mount, files, names);
    }
  }

  async #isHidden(
    mount: Mount,
    files: readonly IgnorePatterns[],
    { names, isFolder }: { readonly names: readonly string[]; readonly isFolder: boolean },
  ): Promise<boolean> {
    const hides = files.some((patterns) => isIgnored(patterns, names, isFolder, this.#effort));
    if (this.#effort.left < 0) throw tooMuch(mount);
    if (this.#effort.left < this.#turnAt) {
      this.#turnAt = this.#effort.left - STEPS_AT_ONCE;
      await turn();
    }
    return hides;
  }

  /** A link cannot be covered, so what it leads to is, where a mount shows that. */
  async #hide(mount: Mount, names: readonly string[], entry: Dirent): Promise<void> {
    if (!entry.isSymbolicLink()) {
      return this.add(mount, names, entry.isDirectory() ? 'empty-directory' : 'empty-file');
    }
    const real = await realpath(join(mount.source, ...names)).catch(() => undefined);
    if (real === undefined) return;
    const shows = (await kindOf(real)) === 'directory' ? 'empty-directory' : 'empty-file';
    for (const shown of this.#mounts) {
      const inside = relative(await realpath(shown.source), real);
      if (inside === '') {
        throw refused(
          `"${join(mount.source, ...names)}" is to be hidden and leads to all of "${shown.source}"`,
          'remove the link, or mount something else',
        );
      }
      if (inside !== '..' && !inside.startsWith(`..${sep}`)) this.add(shown, inside.split(sep), shows);
    }
  }
}

/**
 * Undefined where this user may not look: another one, as whom the server runs, may. What cannot be named is refused, for it
 * could not be hidden either.
 */
async function entriesOf(directory: string): Promise<readonly Dirent[] | undefined> {
  try {
    return await readdir(directory, { withFileTypes: true });
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'EACCES' || errno === 'EPERM') return undefined;
    const isGone = errno === 'ENOENT' || errno === 'ENOTDIR';
    if (isGone && !directory.includes('\uFFFD')) return [];
    const why = isGone ? 'its name is no valid text' : `it cannot be read (${errno ?? 'unexpected failure'})`;
    throw refused(
      `"${shortened(directory)}" cannot be looked through for what must stay hidden: ${why}`,
      'rename or move it, or mount only what the server needs',
    );
  }
}

/** A path too long to be looked into is too long to be read, too. */
const shortened = (file: string): string => (file.length > MAX_SHOWN ? `${file.slice(0, MAX_SHOWN)}…` : file);

/** What cannot be looked at may be a directory, and reading it says why not. */
async function kindOf(source: string): Promise<'directory' | 'other' | 'absent'> {
  try {
    return (await stat(source)).isDirectory() ? 'directory' : 'other';
  } catch (error) {
    const errno = errnoOf(error);
    return errno === 'ENOENT' || errno === 'ENOTDIR' ? 'absent' : 'directory';
  }
}

/** Undefined when there is no such file. A link could be led elsewhere by a server that writes beside it. */
async function patternsOf(file: string, linksRefused = false): Promise<IgnorePatterns | undefined> {
  const found = await lstat(file).catch(() => undefined);
  if (found?.isSymbolicLink() === true && linksRefused) {
    throw refused(`"${file}" is a link`, 'put a file with the patterns in its place');
  }
  try {
    return parseIgnore(await readText(file, { maxBytes: MAX_BYTES, what: 'ignore file' }));
  } catch (error) {
    if (hasCode(error, 'file/not-found')) return undefined;
    throw error;
  }
}

const tooMuch = ({ source }: Mount): SkepError =>
  refused(
    `"${source}" holds too much to look through for what must stay hidden, or ignore files hold too much to compare it with`,
    'mount only the part of it that the server needs, or shorten the patterns',
  );

const refused = (message: string, hint: string) => new SkepError('run/cannot-hide', { message, hint });
