import { lstat, open, readdir } from 'node:fs/promises';
import path from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { ifThere } from '@skep/core/files/errno.ts';
import { readText } from '@skep/core/files/read-limited.ts';
import { normalName } from '../../protocol/pypi-name.ts';
import { notFetched } from '../gateway/failure.ts';
import { notFromIndex } from './failure.ts';

const MAX_RECORD_BYTES = 64 * 1024 * 1024;

/** A virtual environment that pip has filled. */
export interface FilledEnvironment {
  /** On this machine. Nothing in it leads out of it. */
  readonly tree: string;
  /** The directory of its packages, relative to `tree`. */
  readonly packages: string;
  /** The package whose program is the one to run. */
  readonly name: string;
  /** For messages. */
  readonly specifier: string;
}

/**
 * Refuses what pip took from somewhere else than the index: it writes down where from (PEP 610). Throws
 * `runtime/prefetch-failed`.
 */
export async function checkPythonOrigins({ tree, packages, specifier }: FilledEnvironment): Promise<void> {
  const directory = path.join(tree, packages);
  const names = (await readdir(directory)).filter((name) => name.endsWith('.dist-info'));
  for (const name of names) {
    const note = path.join(directory, name, 'direct_url.json');
    if ((await ifThere(lstat(note))) !== undefined) throw notFromIndex(specifier, name.replace(/-.*$/, ''));
  }
}

/**
 * The script of a package that is its server, relative to the environment, and whether Python runs it: the only one, or
 * the one named like the package. Throws `runtime/prefetch-failed`, which lists what there is.
 */
export async function serverScript(
  environment: FilledEnvironment,
): Promise<{ readonly script: string; readonly isPython: boolean }> {
  const { tree, name } = environment;
  const found = await scriptsOf(environment);
  const named = found.filter((one) => normalName(one) === normalName(name));
  const [chosen] = named.length > 0 ? named : found.length === 1 ? found : [];
  if (chosen === undefined) throw unclear(environment, found);
  const script = path.posix.join('bin', chosen);
  return { script, isPython: await isPython(path.join(tree, script)) };
}

/** Names in `bin` that the package wrote down as its own (RECORD), each a plain file. */
async function scriptsOf({ tree, packages, name, specifier }: FilledEnvironment): Promise<string[]> {
  const directory = path.join(tree, packages);
  const info = (await readdir(directory)).find(
    (one) =>
      one.endsWith('.dist-info') && normalName(one.replace(/-[^-]+\.dist-info$/, '')) === normalName(name),
  );
  if (info === undefined) throw notFetched(specifier, 'pip did not install it');
  const options = { maxBytes: MAX_RECORD_BYTES, what: 'list of files' };
  const record = await readText(path.join(directory, info, 'RECORD'), options);
  const listed = record.split('\n').flatMap((line) => /^(?:\.\.\/)+bin\/([\w.-]+),/.exec(line)?.[1] ?? []);
  const there = await Promise.all(
    listed.map(async (one) => {
      const file = await ifThere(lstat(path.join(tree, 'bin', one)));
      return file?.isFile() === true ? one : undefined;
    }),
  );
  return there.filter((one) => one !== undefined).toSorted();
}

function unclear({ name, specifier }: FilledEnvironment, found: readonly string[]): SkepError {
  const listing = found.length === 0 ? 'it has no program' : `its programs are ${found.join(', ')}`;
  return new SkepError('runtime/prefetch-failed', {
    message: `cannot tell what to run in package "${specifier}": ${listing}`,
    hint: `choose a package that brings one program, or one named "${normalName(name)}"`,
  });
}

/** By its `#!` line: pip names the interpreter there. */
async function isPython(file: string): Promise<boolean> {
  await using handle = await open(file);
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(256), 0, 256, 0);
  return /^#!.*\bpython/.test(buffer.toString('latin1', 0, bytesRead).split('\n')[0] ?? '');
}
