import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Signer } from '@aws-sdk/rds-signer';
import { instanceRegion, type MetadataPlace } from './instance-region.ts';
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
