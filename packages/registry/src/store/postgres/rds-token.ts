import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Signer } from '@aws-sdk/rds-signer';
import { readLimited } from '@skep/core/fetch/read-limited.ts';
import type { Login, PostgresSettings } from './settings.ts';

/** A password that is good for one connection. Fails with `store/no-token`. */
export type LoginToken = (login: Login) => Promise<string>;

/**
 * Tokens of RDS IAM authentication (Amazon RDS User Guide, "IAM database authentication"): a request to connect as the
 * user, signed with the credentials of this machine, good for 15 minutes. Each call signs anew; the region, once known,
 * and credentials that are still good are kept. The SDK is loaded at the first call and looks for credentials itself,
 * in the environment, profiles and the services of ECS, EKS and EC2.
 */
export function rdsToken(
  { region }: NonNullable<PostgresSettings['awsRdsIam']>,
  metadata: MetadataPlace,
): LoginToken {
  const signers = new Map<string, Signer>();
  let known = region === 'detect' ? undefined : region;
  return async ({ host, port, user }) => {
    let signer = signers.get(user);
    if (signer === undefined) {
      known ??= await instanceRegion(metadata);
      const { Signer: RdsSigner } = await import('@aws-sdk/rds-signer');
      signer = new RdsSigner({ hostname: host, port, username: user, region: known });
      signers.set(user, signer);
    }
    try {
      return await signer.getAuthToken();
    } catch (cause) {
      const why = cause instanceof Error ? cause.message.split('\n', 1)[0] : String(cause);
      const message = `no token to sign in to the database as "${user}": ${why ?? ''}`;
      throw new SkepError('store/no-token', { message, cause });
    }
  };
}

interface MetadataPlace {
  /** `AWS_EC2_METADATA_SERVICE_ENDPOINT`, which the AWS SDKs read too; the link-local address where it is not set. */
  readonly endpoint?: string | undefined;
  /** Ends the asking; two seconds from the call where it is not given. */
  readonly deadline?: AbortSignal | undefined;
}

const LINK_LOCAL = 'http://169.254.169.254';
const TIMEOUT_MS = 2_000;
const MAX_BYTES = 1_024;
/** Seconds; both questions are asked at once. */
const SESSION_TTL = '60';

/**
 * The region that this machine runs in, of its instance metadata service (IMDSv2, Amazon EC2 User Guide, "Use IMDS").
 * Fails with `store/no-token`, which names the setting to give instead.
 */
export async function instanceRegion({ endpoint = LINK_LOCAL, deadline }: MetadataPlace): Promise<string> {
  const signal = deadline ?? AbortSignal.timeout(TIMEOUT_MS);
  try {
    const session = await ask(new URL('/latest/api/token', endpoint), {
      method: 'PUT',
      headers: { 'X-aws-ec2-metadata-token-ttl-seconds': SESSION_TTL },
      signal,
    });
    const region = await ask(new URL('/latest/meta-data/placement/region', endpoint), {
      headers: { 'X-aws-ec2-metadata-token': session },
      signal,
    });
    if (/^[a-z]{2,}(?:-[a-z0-9]+)+$/.test(region)) return region;
    throw undetectedRegion('the answer of the instance metadata service is no region');
  } catch (cause) {
    if (cause instanceof SkepError && cause.code === 'store/no-token') throw cause;
    throw undetectedRegion(
      signal.aborted
        ? 'the instance metadata service does not answer within 2 s'
        : 'the instance metadata service cannot be asked',
      cause,
    );
  }
}

/** Nothing but the service itself answers: redirects and bodies of any other size are failures. */
async function ask(url: URL, init: RequestInit): Promise<string> {
  const response = await fetch(url, { ...init, redirect: 'error' });
  if (!response.ok || response.body === null) {
    await response.body?.cancel();
    throw undetectedRegion(`the instance metadata service answers with status ${response.status}`);
  }
  return (await readLimited(response.body, MAX_BYTES)).toString('latin1').trim();
}

function undetectedRegion(why: string, cause?: unknown): SkepError {
  return new SkepError('store/no-token', {
    message: `database.dynamicAuth.awsRdsIam.region: cannot detect the region: ${why}`,
    hint: 'name the region of the database in place of "detect"',
    cause,
  });
}
