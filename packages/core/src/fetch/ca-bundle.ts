import { X509Certificate } from 'node:crypto';
import { getCACertificates } from 'node:tls';
import { SkepError } from '../errors/skep-error.ts';
import { readText } from '../files/read-limited.ts';

const MAX_BYTES = 4 * 1024 * 1024;
const PEM = /-----BEGIN (?:TRUSTED )?CERTIFICATE-----[\s\S]+?-----END (?:TRUSTED )?CERTIFICATE-----/gu;

/**
 * The certificates of a PEM file, one text each; comments and other PEM objects are skipped. Fails with
 * `fetch/ca-bundle` when there is none or one cannot be parsed, with `file/*` when the file cannot be read.
 */
export async function readCaBundle(path: string): Promise<readonly string[]> {
  const text = await readText(path, { maxBytes: MAX_BYTES, what: 'CA bundle' });
  const certificates = text.match(PEM) ?? [];
  if (certificates.length === 0) {
    throw new SkepError('fetch/ca-bundle', { message: `CA bundle "${path}" holds no certificate` });
  }
  for (const [index, certificate] of certificates.entries()) checkCertificate(certificate, path, index + 1);
  return certificates;
}

/**
 * What TLS connections trust: Node's own authorities, those of NODE_EXTRA_CA_CERTS, and the given ones on top. A bundle
 * adds, it never replaces, as NODE_EXTRA_CA_CERTS does.
 */
export function trustedWith(extra: readonly string[]): string[] {
  return [...getCACertificates('default'), ...extra];
}

function checkCertificate(certificate: string, path: string, number: number): void {
  try {
    void new X509Certificate(certificate);
  } catch (cause) {
    throw new SkepError('fetch/ca-bundle', {
      message: `certificate ${number} of CA bundle "${path}" cannot be parsed`,
      cause,
    });
  }
}
