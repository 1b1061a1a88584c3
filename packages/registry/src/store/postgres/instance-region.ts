import { readLimited } from '@skep/core/fetch/read-limited.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';

export interface MetadataPlace {
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
    throw undetected('the answer of the instance metadata service is no region');
  } catch (cause) {
    if (cause instanceof SkepError && cause.code === 'store/no-token') throw cause;
    throw undetected(
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
    throw undetected(`the instance metadata service answers with status ${response.status}`);
  }
  return (await readLimited(response.body, MAX_BYTES)).toString('latin1').trim();
}

function undetected(why: string, cause?: unknown): SkepError {
  return new SkepError('store/no-token', {
    message: `database.dynamicAuth.awsRdsIam.region: cannot detect the region: ${why}`,
    hint: 'name the region of the database in place of "detect"',
    cause,
  });
}
