import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { errnoOf } from '@skep/core/files/errno.ts';

export interface Asking {
  /** A POSIX shell. */
  readonly shell?: string;
  /** How long all of them together may take to answer, milliseconds. */
  readonly patienceMs?: number;
}

const SHELL = '/bin/sh';
/** One that is mounted when it is used may have to wake a disk. */
const PATIENCE_MS = 10_000;
/** A line for each that has answered, whatever it said. Links are followed, as a mount follows them. */
const ASK = 'for source; do [ -e "$source" ]; echo; done';

/** Sources that a process of this one still waits for: it cannot always be killed, so no second one is started. */
const waitedFor = new Set<string>();

/** Fails with `run/source-silent` when a mount lies on a file system that does not answer, before anything else looks at it. */
export async function requireAnswers(
  mounts: readonly { readonly source: string }[],
  asking?: Asking,
): Promise<void> {
  const silent = await silentSource([...new Set(mounts.map(({ source }) => source))], asking);
  if (silent === undefined) return;
  throw new SkepError('run/source-silent', {
    message: `mount source "${silent}" lies on a file system that does not answer`,
  });
}

/**
 * The first of these absolute paths that lies on a file system which does not answer; undefined when all answer, be it
 * that nothing is there. Another process looks, because whoever asks such a file system waits for good: within this one
 * that would be one of the four threads that do all its work with files. Fails with `run/source-silent` when no process can be started.
 */
export async function silentSource(
  sources: readonly string[],
  { shell = SHELL, patienceMs = PATIENCE_MS }: Asking = {},
): Promise<string | undefined> {
  const known = sources.find((source) => waitedFor.has(source));
  if (known !== undefined || sources.length === 0 || !existsSync(shell)) return known;
  try {
    const answers = await countAnswers(sources, { shell, patienceMs });
    return sources[answers];
  } catch (cause) {
    throw new SkepError('run/source-silent', {
      message: `the sources of mounts cannot be looked at: ${errnoOf(cause) ?? 'unexpected failure'}`,
      hint: 'try again',
      cause,
    });
  }
}

/** How many of them answer, one after the other, until one does not. */
function countAnswers(sources: readonly string[], { shell, patienceMs }: Required<Asking>): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(shell, ['-c', ASK, 'skep-sources', ...sources], {
      cwd: '/',
      env: {},
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    let answers = 0;
    child.stdout.on('data', (lines: Buffer) => (answers += lines.length));
    const late = setTimeout(() => {
      const silent = sources[answers] ?? '';
      waitedFor.add(silent);
      child.once('exit', () => waitedFor.delete(silent));
      child.kill('SIGKILL');
      child.stdout.destroy();
      child.unref();
      resolve(answers);
    }, patienceMs);
    child.once('error', (error) => {
      clearTimeout(late);
      reject(error);
    });
    // Where it was killed by somebody else, what it did not come to is not known to be silent.
    child.once('close', () => {
      clearTimeout(late);
      resolve(sources.length);
    });
  });
}
