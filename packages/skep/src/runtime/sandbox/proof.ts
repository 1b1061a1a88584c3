import { createHash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { atomicWrite } from '@skep/core/files/atomic-write.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { bool, members, readAs, text } from '@skep/core/settings/shape.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';

const proofShape = members({ subject: text, version: text, ownNetwork: bool });

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
export function subjectOf(programs: readonly string[], options: readonly (string | Uint8Array)[]): string {
  const text = (file: string): string => readFileSync(file, 'utf8');
  const rights = text('/proc/self/status')
    .split('\n')
    .filter((line) => /^(?:[UG]id|Groups|Cap\w+|NoNewPrivs|Seccomp\w*):/.test(line));
  const namespaces = ['user', 'mnt', 'net', 'pid'].map((one) => readlinkSync(`/proc/self/ns/${one}`));
  const files = programs.map((file) => {
    const { dev, ino, size, mode, uid, mtimeMs, ctimeMs } = statSync(file);
    return [file, dev, ino, size, mode, uid, mtimeMs, ctimeMs];
  });
  const boot = text('/proc/sys/kernel/random/boot_id');
  const hash = createHash('sha256');
  hash.update(JSON.stringify([boot, securityLabel(), rights, namespaces, files]));
  for (const option of options) hash.update(option).update('\0');
  return hash.digest('hex');
}

/** What AppArmor or SELinux calls this process; kernels without either do not say. */
function securityLabel(): string {
  try {
    return readFileSync('/proc/self/attr/current', 'utf8');
  } catch {
    return '';
  }
}

/** Undefined when there is none of that subject, or somebody else could have written it. */
export function recallProof(file: string, subject: string): Proof | undefined {
  const proof = readAs(proofShape, parsedJson(readOwn(file) ?? ''));
  return proof?.subject === subject ? proof : undefined;
}

/** For the next command. Where it cannot be written, that one proves it again. */
export async function rememberProof(file: string, proof: Proof): Promise<void> {
  try {
    await atomicWrite(file, JSON.stringify(proof));
  } catch (error) {
    if (!(error instanceof SkepError)) throw error;
  }
}

function readOwn(file: string): string | undefined {
  let descriptor;
  try {
    descriptor = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const found = fstatSync(descriptor);
    const own = found.isFile() && found.uid === statSync('/proc/self').uid && (found.mode & 0o022) === 0;
    return own ? readFileSync(descriptor, 'utf8') : undefined;
  } catch (error) {
    if (errnoOf(error) !== undefined) return undefined;
    throw error;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}
