import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Resolve } from '@skep/core/fetch/address-guard.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import { limitFolder } from './folder-size-limit.ts';
import { NO_PIN, pinAddress } from './address.ts';
import { runGit, type GitResult } from './command.ts';
import { credentialsOf, type GitAuth } from './credentials.ts';
import { gitEnvironment } from './environment.ts';
import type { GitRepository } from './repository-url.ts';

/** What a git source needs of the machine. */
export interface GitSurroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where temporary folders are made. */
  readonly tempDir: string;
  readonly clock: Pick<Clock, 'after'>;
  /** False refuses repositories at private, loopback and link-local addresses. */
  readonly allowPrivate: boolean;
  /** The program; default `git` on the PATH of `env`. */
  readonly program?: string;
  readonly resolve?: Resolve;
  /** Milliseconds for one fetch; default 60 s. */
  readonly timeoutMs?: number;
  /** Of the file, and of everything git fetches for it; default 100 MiB. */
  readonly maxBytes?: number;
  /** Bytes of memory for each of git's processes, where the system has such a limit; default 512 MiB. */
  readonly maxMemory?: number;
}

/** git with one repository, in one temporary folder, for the time of one fetch. */
export interface GitSession {
  readonly url: string;
  /** Runs a command in the folder; a status other than 0 is for the caller to judge. */
  run(args: readonly string[]): Promise<GitResult>;
}

const TIMEOUT_MS = 60_000;
const MAX_BYTES = 100 * 1024 * 1024;
const MAX_MEMORY = 512 * 1024 * 1024;

/**
 * Gives `use` a session and takes everything away again: the folder is gone and no process runs, however it ends. Fails
 * with the signal's reason, `source/timeout`, `source/too-large`, or what `use` fails with.
 */
export async function withGit<T>(
  remote: { readonly repository: GitRepository; readonly auth: GitAuth | undefined },
  surroundings: GitSurroundings,
  outer: AbortSignal,
  use: (git: GitSession) => Promise<T>,
): Promise<T> {
  const { repository, auth } = remote;
  const { timeoutMs = TIMEOUT_MS, maxBytes = MAX_BYTES, maxMemory = MAX_MEMORY } = surroundings;
  const { clock, program = 'git' } = surroundings;
  const credentials = await credentialsOf(repository, auth);
  const pin = surroundings.allowPrivate ? NO_PIN : await pinAddress(repository, surroundings.resolve);
  const ceiling = await realpath(surroundings.tempDir);
  const folder = await mkdtemp(join(ceiling, 'skep-git-'));
  const env = gitEnvironment({
    own: surroundings.env,
    repository,
    credentials,
    pin,
    ceiling,
    home: folder,
    sshKeyFile: auth?.sshKeyFile,
  });
  const { url } = repository;
  const late = new AbortController();
  const { cancel } = clock.after(timeoutMs, () => {
    const message = `"${url}" was not fetched within ${timeoutMs} ms`;
    late.abort(new SkepError('source/timeout', { message }));
  });
  const size = limitFolder({ folder, url, maxBytes, clock });
  const signal = AbortSignal.any([outer, late.signal, size.signal]);
  try {
    return await use({
      url,
      run: (args) => runGit({ program, args, env, folder, url, maxBytes, maxMemory, signal }),
    });
  } catch (error) {
    outer.throwIfAborted();
    throw error;
  } finally {
    cancel();
    size.stop();
    await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}
