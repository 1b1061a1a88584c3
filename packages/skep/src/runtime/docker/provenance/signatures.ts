import { bundleFromJSON, type Bundle } from '@sigstore/bundle';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { descriptors, type Descriptor, type ImageRegistry } from './image-registry.ts';

/** What somebody says to have signed of an image, not verified yet. */
export interface Signature {
  readonly bundle: Bundle;
  /** The bytes that were signed, where the bundle does not hold them. */
  readonly artifact?: Buffer;
  /** The in-toto statement that was signed, where it is one. */
  readonly statement?: Readonly<Record<string, unknown>>;
  /** Digests of images that the signed text is about. */
  readonly about: readonly string[];
}

const SIMPLE_SIGNING = 'application/vnd.dev.cosign.simplesigning.v1+json';
const BUNDLE = 'application/vnd.dev.sigstore.bundle';
const STATEMENT = 'application/vnd.in-toto+json';
const MAX_BUNDLE_BYTES = 10 * 1024 * 1024;
const MAX_PAYLOAD_BYTES = 1024 * 1024;
/** Images are signed a few times; a registry that lists more is not believed for longer. */
const MAX_SIGNATURES = 50;

/**
 * Everything that a registry has as signatures of a digest: simple signing of cosign (the tag `sha256-….sig`), then
 * bundles of Sigstore that refer to it (OCI 1.1 referrers). What cannot be read is left out.
 */
export async function* signaturesOf(registry: ImageRegistry, digest: string): AsyncGenerator<Signature> {
  const simple = await registry.manifest(`${digest.replace(':', '-')}.sig`);
  const layers = descriptors(simple?.document['layers']).filter(
    ({ mediaType }) => mediaType === SIMPLE_SIGNING,
  );
  for (const layer of layers.slice(0, MAX_SIGNATURES)) {
    const payload = await registry.blob(layer.digest, MAX_PAYLOAD_BYTES);
    const signature = payload && simpleSignature(payload, layer);
    if (signature) yield signature;
  }
  const referring = (await registry.referrers(digest)).filter(isBundle);
  for (const { digest: at } of referring.slice(0, MAX_SIGNATURES)) {
    const manifest = await registry.manifest(at);
    const [layer] = descriptors(manifest?.document['layers']).filter(isBundle);
    const bytes = layer && (await registry.blob(layer.digest, MAX_BUNDLE_BYTES));
    const signature = bytes && bundled(bytes);
    if (signature) yield signature;
  }
}

const isBundle = ({ mediaType, artifactType = mediaType }: Descriptor): boolean =>
  mediaType.startsWith(BUNDLE) || artifactType.startsWith(BUNDLE);

/** A signature as cosign keeps it in annotations, as the bundle that says the same. */
function simpleSignature(payload: Buffer, { digest, annotations }: Descriptor): Signature | undefined {
  const certificate = annotations['dev.sigstore.cosign/certificate'];
  const logged = parsedJson(annotations['dev.sigstore.cosign/bundle'] ?? '');
  const entry = isRecord(logged) ? logged['Payload'] : undefined;
  if (certificate === undefined || !isRecord(logged) || !isRecord(entry)) return undefined;
  const said = parsedJson(payload.toString('utf8'));
  const critical = isRecord(said) ? said['critical'] : undefined;
  const image = isRecord(critical) ? critical['image'] : undefined;
  const about = isRecord(image) ? image['docker-manifest-digest'] : undefined;
  if (typeof about !== 'string') return undefined;
  const bundle = asBundle({
    mediaType: `${BUNDLE}+json;version=0.1`,
    verificationMaterial: {
      x509CertificateChain: { certificates: [{ rawBytes: derOf(certificate) }] },
      tlogEntries: [
        {
          logIndex: String(entry['logIndex']),
          logId: { keyId: Buffer.from(String(entry['logID']), 'hex').toString('base64') },
          kindVersion: { kind: 'hashedrekord', version: '0.0.1' },
          integratedTime: String(entry['integratedTime']),
          inclusionPromise: { signedEntryTimestamp: logged['SignedEntryTimestamp'] },
          canonicalizedBody: entry['body'],
        },
      ],
    },
    messageSignature: {
      messageDigest: {
        algorithm: 'SHA2_256',
        digest: Buffer.from(digest.slice('sha256:'.length), 'hex').toString('base64'),
      },
      signature: annotations['dev.cosignproject.cosign/signature'],
    },
  });
  return bundle && { bundle, artifact: payload, about: [about] };
}

/** A bundle of a statement about images. */
function bundled(bytes: Buffer): Signature | undefined {
  const bundle = asBundle(parsedJson(bytes.toString('utf8')));
  const envelope = bundle?.content.$case === 'dsseEnvelope' ? bundle.content.dsseEnvelope : undefined;
  if (bundle === undefined || envelope?.payloadType !== STATEMENT) return undefined;
  const statement = parsedJson(envelope.payload.toString('utf8'));
  if (!isRecord(statement) || !Array.isArray(statement['subject'])) return undefined;
  const about = (statement['subject'] as unknown[]).flatMap((subject) => {
    const digest = isRecord(subject) ? subject['digest'] : undefined;
    const hash = isRecord(digest) ? digest['sha256'] : undefined;
    return typeof hash === 'string' ? [`sha256:${hash}`] : [];
  });
  return { bundle, statement, about };
}

function asBundle(value: unknown): Bundle | undefined {
  try {
    return bundleFromJSON(value);
  } catch {
    // Whoever may write to the registry decides what stands there: it is no signature.
    return undefined;
  }
}

function derOf(pem: string): string {
  return pem.replaceAll(/-----(?:BEGIN|END) CERTIFICATE-----|\s/g, '');
}
