import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { open, readFile, readlink, stat } from 'node:fs/promises';
import { atomicWrite } from '@skep/core/files/atomic-write.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { z } from 'zod';
import { bootId } from './linux-process.ts';

const proofShape = z.object({ subject: z.string(), version: z.string(), ownNetwork: z.boolean() });

/** That bubblewrap was tried and confines. */
export interface Proof {
  /** What it was proved of; see `subjectOf`. */
  readonly subject: string;
  /** Of bubblewrap. */
  readonly version: string;
  /** A workload can have a network of its own. */
  readonly ownNetwork: boolean;
}

/**
 * Everything that what was proved once depends on: the programs, the options they are given, this boot of the kernel, and
 * what the kernel lets this process do. Short, and another one as soon as anything of it changes.
 */
export async function subjectOf(
  programs: readonly string[],
  options: readonly (string | Uint8Array)[],
): Promise<string> {
  const hash = createHash('sha256');
  const status = await readFile('/proc/self/status', 'utf8');
  const rights = status
    .split('\n')
    .filter((line) => /^(?:[UG]id|Groups|Cap\w+|NoNewPrivs|Seccomp\w*):/.test(line));
  const namespaces = ['user', 'mnt', 'net', 'pid'].map((one) => readlink(`/proc/self/ns/${one}`));
  const files = programs.map(async (file) => {
    const { dev, ino, size, mode, uid, mtimeMs, ctimeMs } = await stat(file);
    return [file, dev, ino, size, mode, uid, mtimeMs, ctimeMs];
  });
  const label = readFile('/proc/self/attr/current', 'utf8').catch(() => '');
  const parts = await Promise.all([bootId(), label, ...namespaces, Promise.all(files)]);
  hash.update(JSON.stringify([parts, rights]));
  for (const option of options) hash.update(option).update('\0');
  return hash.digest('hex');
}

/** Undefined when there is none of that subject, or somebody else could have written it. */
export async function recallProof(file: string, subject: string): Promise<Proof | undefined> {
  const text = await readOwn(file);
  if (text === undefined) return undefined;
  try {
    const proof = proofShape.parse(JSON.parse(text));
    return proof.subject === subject ? proof : undefined;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof z.ZodError) return undefined;
    throw error;
  }
}

/** For the next command. Where it cannot be written, that one proves it again. */
export async function rememberProof(file: string, proof: Proof): Promise<void> {
  try {
    await atomicWrite(file, JSON.stringify(proof));
  } catch (error) {
    if (!(error instanceof SkepError)) throw error;
  }
}

async function readOwn(file: string): Promise<string | undefined> {
  try {
    const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const [found, self] = await Promise.all([handle.stat(), stat('/proc/self')]);
      const own = found.isFile() && found.uid === self.uid && (found.mode & 0o022) === 0;
      return own ? await handle.readFile('utf8') : undefined;
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (errnoOf(error) !== undefined) return undefined;
    throw error;
  }
}
