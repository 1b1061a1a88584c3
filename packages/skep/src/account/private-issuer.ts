import type { MayBePrivate } from '@skep/auth/sign-in/port.ts';
import type { SignInFetch } from '@skep/auth/sign-in/sign-in-fetch.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { shownServer } from './registry-address.ts';

type Addresses = Pick<SignInFetch, 'isPrivate'>;

interface Allowed {
  readonly allowPrivate: boolean;
  /** Said by the person; what the document of the registry names is not here. */
  readonly issuer?: string | undefined;
}

/**
 * What of a sign-in may be at private addresses: a registry that is at one, where the person allows that, with what it names, and
 * an issuer that the person named.
 */
export async function mayBePrivateBy(
  { allowPrivate, issuer }: Allowed,
  server: string,
  { isPrivate }: Addresses,
): Promise<MayBePrivate> {
  const resource = allowPrivate && (await isPrivate(new URL(server)));
  return { resource, issuer: issuer !== undefined && (await isPrivate(new URL(issuer))) };
}

/**
 * A server of the internet must not have this machine ask addresses that only it can reach: `auth/bad-metadata`. What is found here
 * opens nothing, so a name that is answered otherwise afterwards is refused when it is dialled.
 */
export async function refuseHidden(
  issuer: string | undefined,
  server: string,
  fetch: Addresses,
): Promise<void> {
  if (issuer === undefined || !(await fetch.isPrivate(new URL(issuer)))) return;
  if (await fetch.isPrivate(new URL(server))) return;
  throw new SkepError('auth/bad-metadata', {
    message: `${shownServer(server)} names an identity provider at a private address: ${issuer}`,
    hint: 'if whoever runs the registry says so too, name it with --issuer',
  });
}
