import { dirname, resolve } from 'node:path';
import { SkepError } from '../errors/skep-error.ts';
import type { Shown } from '../fetch/requester.ts';
import { readText } from '../files/read-limited.ts';
import { readKubeconfig } from './kubeconfig.ts';

/** Where the API server is, and what it is shown. */
export interface ClusterAccess {
  readonly server: URL;
  /** PEM. */
  readonly ca?: string;
  /** False only where the kubeconfig says so. */
  readonly verify: boolean;
  readonly shown: Shown;
  /** Where a kubeconfig says: its context and the namespace of that. */
  readonly context?: string;
  readonly namespace?: string | undefined;
}

/** What says which cluster is meant. */
export interface ClusterPlace {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** A kubeconfig, and which of its contexts; absent means the one that it calls current. */
  readonly kubeconfig?: string | undefined;
  readonly context?: string | undefined;
}

/** Where a pod finds what its service account may show (as the API server mounts it). */
export const ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount';
/** Longer than any token, certificate or kubeconfig. */
const MAX_FILE_BYTES = 1024 * 1024;

/**
 * Reads anew where the cluster is and what it is shown, so that a token or certificate that was replaced is used from the
 * next request on. The kubeconfig that was named comes first, then that of the variable KUBECONFIG, then the account of
 * the pod that this runs in. Fails with `source/invalid-cluster`.
 */
export async function clusterAccess(
  { env, kubeconfig = env['KUBECONFIG'], context }: ClusterPlace,
  accountFolder = ACCOUNT_FOLDER,
): Promise<ClusterAccess> {
  if (kubeconfig !== undefined && kubeconfig !== '') return fromKubeconfig(kubeconfig, context);
  const host = env['KUBERNETES_SERVICE_HOST'];
  if (host === undefined || host === '') {
    throw invalidCluster(
      'this program runs in no cluster, and neither kubernetes.kubeconfig nor KUBECONFIG names one',
    );
  }
  const port = env['KUBERNETES_SERVICE_PORT'] ?? '443';
  const server = URL.parse(`https://${host.includes(':') ? `[${host}]` : host}:${port}`);
  if (server === null)
    throw invalidCluster('KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are no address');
  const [token, ca] = await Promise.all(
    ['token', 'ca.crt'].map((name) =>
      readPart(resolve(accountFolder, name), `${name} of the service account`),
    ),
  );
  return { server, ca: authorityOf(ca ?? ''), verify: true, shown: bearer(token ?? '') };
}

async function fromKubeconfig(path: string, context: string | undefined): Promise<ClusterAccess> {
  const label = `kubeconfig "${path}"`;
  const read = readKubeconfig(await readPart(path, 'kubeconfig'), label, context);
  const { server, ca, verify, user } = read;
  const folder = dirname(path);
  const part = async (given: string | undefined, file: string | undefined, what: string) =>
    given ?? (file === undefined ? undefined : readPart(resolve(folder, file), what));
  const [authority, token, cert, key] = await Promise.all([
    part(ca.data, ca.file, 'certificate authority of the cluster'),
    part(user.token, user.tokenFile, 'token of the kubeconfig'),
    part(user.certificate.data, user.certificate.file, 'client certificate'),
    part(user.key.data, user.key.file, 'client key'),
  ]);
  const shown = token === undefined ? { headers: {} } : bearer(token);
  return {
    server,
    verify,
    context: read.context,
    namespace: read.namespace,
    ...(authority === undefined ? {} : { ca: authorityOf(authority) }),
    shown: cert === undefined || key === undefined ? shown : { ...shown, identity: { cert, key } },
  };
}

/** Without any, everything that is public would be trusted, or nothing. */
function authorityOf(text: string): string {
  if (/-----BEGIN (?:TRUSTED )?CERTIFICATE-----/.test(text)) return text;
  throw invalidCluster('the certificate authority of the cluster holds no certificate');
}

function bearer(text: string): Shown {
  const token = text.trim();
  if (!/^[\x21-\x7e]+$/.test(token)) throw invalidCluster('the token for the cluster is empty or no token');
  return { headers: { authorization: `Bearer ${token}` } };
}

async function readPart(path: string, what: string): Promise<string> {
  try {
    return await readText(path, { maxBytes: MAX_FILE_BYTES, what });
  } catch (cause) {
    throw invalidCluster(`the ${what} cannot be read from "${path}"`, cause);
  }
}

function invalidCluster(message: string, cause?: unknown): SkepError {
  return new SkepError('source/invalid-cluster', { message, cause });
}
