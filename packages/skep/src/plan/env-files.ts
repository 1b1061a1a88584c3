import { readdir, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { errnoOf } from '@skep/core/files/errno.ts';
import { readText } from '@skep/core/files/read-limited.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { parseEnvFile } from './merge-env.ts';
import type { Surroundings } from './plan.ts';

/** The variables of one file, and the name it was given by. */
export interface EnvFile {
  readonly path: string;
  readonly values: Readonly<Record<string, string>>;
}

const MAX_FILE_BYTES = 1024 * 1024;
const MAX_FILES = 256;
/** A run configuration, in which they are kept, is no larger. */
const MAX_CHARS = 4 * 1024 * 1024;

/** The file of `--env-file`. Fails with `file/*`, and with `run/invalid-env` naming the line. */
export async function readEnvFile(path: string, cwd: string): Promise<EnvFile> {
  const text = await readText(resolve(cwd, path), { maxBytes: MAX_FILE_BYTES, what: 'env file' });
  return { path, values: parseEnvFile(text, path) };
}

/**
 * The files of `--env-file-dir` in the order of their names (docs/behaviour/run.md#env-files): those in folders and those
 * whose names begin with a dot are left out, and what cannot be read is left out with a warning. A directory that is not
 * there holds nothing.
 */
export async function readEnvDirectory(
  directory: string,
  { cwd, terminal }: Pick<Surroundings, 'cwd' | 'terminal'>,
): Promise<readonly EnvFile[]> {
  const files: EnvFile[] = [];
  let chars = 0;
  for (const name of await filesOf(directory, cwd)) {
    try {
      const file = await readEnvFile(join(directory, name), cwd);
      chars += JSON.stringify(file.values).length;
      files.push(file);
    } catch (error) {
      if (!(error instanceof SkepError)) throw error;
      terminal.err(`Warning: left out: ${printable(error.message)}\n`);
    }
    if (chars > MAX_CHARS) throw tooMuch(directory, `more than ${MAX_CHARS} characters of variables`);
  }
  return files;
}

async function filesOf(directory: string, cwd: string): Promise<readonly string[]> {
  const names = await namesOf(resolve(cwd, directory));
  const visible = names.filter((name) => !name.startsWith('.')).toSorted();
  const isFile = async (name: string): Promise<boolean> => {
    // What is gone by now, or leads nowhere, is told of when it is read.
    const found = await stat(resolve(cwd, directory, name)).catch(() => undefined);
    return found?.isDirectory() !== true;
  };
  if (visible.length > 4 * MAX_FILES) throw tooMuch(directory, `${visible.length} files and folders`);
  const files = [];
  for (const name of visible) if (await isFile(name)) files.push(name);
  if (files.length > MAX_FILES) throw tooMuch(directory, `${files.length} files`);
  return files;
}

async function namesOf(path: string): Promise<readonly string[]> {
  try {
    return await readdir(path);
  } catch (cause) {
    const errno = errnoOf(cause);
    if (errno === 'ENOENT') return [];
    const message =
      errno === 'ENOTDIR'
        ? `--env-file-dir "${path}" is not a directory`
        : `cannot read --env-file-dir "${path}": ${errno ?? 'unexpected failure'}`;
    throw new SkepError('file/unreadable', { message, hint: 'name a directory that you may read', cause });
  }
}

function tooMuch(directory: string, what: string): SkepError {
  return new SkepError('file/too-large', {
    message: `--env-file-dir "${directory}" holds ${what}`,
    hint: `at most ${MAX_FILES} files with ${MAX_CHARS} characters are read; check that it is the right directory`,
  });
}
