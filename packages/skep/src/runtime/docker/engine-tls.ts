import { X509Certificate } from 'node:crypto';
import path from 'node:path';
import type { Duplex } from 'node:stream';
import { connect, createSecureContext, type SecureContextOptions } from 'node:tls';
import { isIP } from 'node:net';
import { trustedWith } from '@skep/core/fetch/ca-bundle.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';

export interface TlsFiles {
  /** Holds `ca.pem`, `cert.pem` and `key.pem`, as docker has them; each may be absent. */
  readonly directory: string;
  /** Text of a file, undefined when it does not exist. */
  readonly readText: (file: string) => Promise<string | undefined>;
}

interface Address {
  readonly host: string;
  readonly port: number;
}

/**
 * How connections to an engine are opened that speaks TLS (docs/behaviour/run.md#finding-the-engine). The engine proves
 * who it is by the authorities of `ca.pem` and no others, or without it by those of this machine; there is no way around
 * that. Fails with `runtime/unavailable` where the files cannot be used.
 */
export async function secureConnections(
  { host, port }: Address,
  { directory, readText }: TlsFiles,
): Promise<() => Duplex> {
  const [ca, cert, key] = await Promise.all(
    ['ca.pem', 'cert.pem', 'key.pem'].map((name) => readText(path.join(directory, name))),
  );
  if ((cert === undefined) !== (key === undefined))
    throw unusable(directory, `${cert === undefined ? 'cert.pem' : 'key.pem'} is missing`);
  if (ca !== undefined) checkCertificate(directory, ca);
  const own = { ca: ca ?? trustedWith([]), ...(cert !== undefined && key !== undefined && { cert, key }) };
  const secureContext = contextOf(directory, own);
  const servername = isIP(host) === 0 ? host : '';
  return () =>
    connect({ host, port, secureContext, servername, minVersion: 'TLSv1.2', rejectUnauthorized: true });
}

/** OpenSSL takes a file without any for no authority at all. */
function checkCertificate(directory: string, ca: string): void {
  try {
    void new X509Certificate(ca);
  } catch {
    throw unusable(directory, 'ca.pem holds no certificate');
  }
}

function contextOf(directory: string, options: SecureContextOptions) {
  try {
    return createSecureContext(options);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw unusable(directory, why.replace(/^error:[^:]*:/, '').replaceAll('::', ': '));
  }
}

function unusable(directory: string, why: string): SkepError {
  return new SkepError('runtime/unavailable', {
    message: `the TLS files in "${directory}" cannot be used: ${why}`,
    hint: 'it holds ca.pem, and cert.pem with its key.pem where the engine asks for them; DOCKER_CERT_PATH names another directory',
  });
}
