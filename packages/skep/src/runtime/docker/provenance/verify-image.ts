import { createHash } from 'node:crypto';
import { mkdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { ifThere } from '@skep/core/files/errno.ts';
import { findLogin } from '../credentials.ts';
import { parseImageReference } from '../image-reference.ts';
import { ImageRegistry } from './image-registry.ts';
import { namesSigner } from './signer.ts';
import { unverified, type Verification } from './verification.ts';

/** A signature is looked at again after a week: a later release may know of a key that is no longer trusted. */
const KNOWN_FOR_MS = 7 * 24 * 60 * 60 * 1000;
/** Each question has a limit of its own, and a registry that lists many signatures is asked many. */
const WITHIN_MS = 60_000;

/**
 * Verifies who signed an image, and answers with the reference of exactly what was verified: its digest is resolved
 * once, here. What was verified before is not looked at again for a week. Fails with `runtime/unverified`, or with
 * `fetch/*` where the registry cannot be asked.
 */
export async function verifyImage(wanted: Verification): Promise<string> {
  const { reference, withinMs = WITHIN_MS } = wanted;
  const limit = AbortSignal.timeout(withinMs);
  try {
    return await verifyBy(AbortSignal.any([wanted.signal, limit]), wanted);
  } catch (error) {
    wanted.signal.throwIfAborted();
    if (!limit.aborted) throw error;
    throw unverified(reference, `its registry did not answer all that was asked within ${withinMs / 1000} s`);
  }
}

async function verifyBy(signal: AbortSignal, wanted: Verification): Promise<string> {
  const { reference, expected, localDigest, credentials, connections, report, resolved } = wanted;
  if (!namesSigner(expected)) throw unverified(reference, 'its catalogue entry does not say who signs it');
  const parsed = parseImageReference(reference);
  const { login } = await findLogin(parsed.host, credentials);
  using registry = new ImageRegistry(parsed, { ...connections, login, signal });
  const step = (): void => report.step(`Verifying ${reference}`);
  const newest = async () => {
    step();
    return (await registry.manifest(parsed.tag ?? 'latest'))?.digest;
  };
  const digest = parsed.digest ?? localDigest ?? (await newest());
  if (digest === undefined) {
    throw new SkepError('runtime/image-not-found', {
      message: `image not found in registry: "${reference}"`,
    });
  }
  const tag = parsed.tag === undefined ? '' : `:${parsed.tag}`;
  const pinned = `${parsed.repository}${tag}@${digest}`;
  resolved?.(pinned);
  const known = knownFile(wanted, parsed.repository, digest);
  if (!(await isFresh(known, wanted.now))) {
    step();
    const { checkSignatures } = await import('./check-signatures.ts');
    await checkSignatures(registry, digest, wanted);
    await mkdir(join(wanted.cacheDir, 'verified'), { recursive: true, mode: 0o700 });
    await writeFile(known, '', { mode: 0o600 });
  }
  return pinned;
}

/** An empty file, named after all that was compared. */
function knownFile(
  { expected, trustedRoot = '', cacheDir }: Verification,
  repository: string,
  digest: string,
): string {
  const compared = JSON.stringify([repository, digest, expected, trustedRoot]);
  return join(cacheDir, 'verified', createHash('sha256').update(compared).digest('hex'));
}

async function isFresh(file: string, now: number): Promise<boolean> {
  const found = await ifThere(stat(file));
  return (
    found !== undefined && found.isFile() && now - found.mtimeMs < KNOWN_FOR_MS && now >= found.mtimeMs - 1000
  );
}
