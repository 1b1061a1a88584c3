import { toSignedEntity, VerificationError, PolicyError, Verifier } from '@sigstore/verify';
import type { ImageRegistry } from './image-registry.ts';
import { differences, factsOf } from './signer.ts';
import { signaturesOf, type Signature } from './signatures.ts';
import { loadTrust } from './trust-root.ts';
import { unverified, type Verification } from './verification.ts';

/**
 * Succeeds when one signature of the digest is valid and says what the catalogue says. Fails with `runtime/unverified`,
 * which tells why the last one did not do.
 */
export async function checkSignatures(
  registry: ImageRegistry,
  digest: string,
  { reference, expected, trustedRoot }: Verification,
): Promise<void> {
  const { material, thresholds } = await loadTrust(expected.sigstore_url ?? '', trustedRoot);
  const verifier = new Verifier(material, thresholds);
  let why = 'the image is not signed';
  for await (const signature of signaturesOf(registry, digest)) {
    const fault = faultOf(signature, { digest, expected, verifier });
    if (fault === undefined) return;
    why = fault;
  }
  throw unverified(reference, why);
}

interface Compared extends Pick<Verification, 'expected'> {
  readonly digest: string;
  readonly verifier: Verifier;
}

/** Why a signature does not do; undefined when it does. */
function faultOf(
  { bundle, artifact, about, statement }: Signature,
  { digest, expected, verifier }: Compared,
): string | undefined {
  if (!about.includes(digest)) return 'its signature is about another image';
  try {
    const signer = factsOf(verifier.verify(toSignedEntity(bundle, artifact)));
    const told = differences(signer, statement, expected);
    return told.length === 0 ? undefined : `image provenance does not match: ${told.join('; ')}`;
  } catch (error) {
    if (!(error instanceof VerificationError) && !(error instanceof PolicyError)) throw error;
    return `its signature is not valid (${error.message})`;
  }
}
