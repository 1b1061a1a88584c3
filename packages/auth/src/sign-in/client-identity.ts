import * as oauth from 'oauth4webapi';
import { importPKCS8 } from 'jose';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { basicLogin } from '../token/exchange.ts';
import type { Discovered } from './discover.ts';
import type { ClientKey, KeptClient, KeptSignIn, SignInServices, SignInTarget, SignInWay } from './port.ts';
import type { Reach } from './reach.ts';
import { endsSoon, isRegistered, registerClient } from './register.ts';

/** Who the client says that it is, and how that came about. */
export interface ChosenClient {
  readonly kind: 'given' | 'cached' | 'document' | 'to-register';
  /** Absent until it is registered. */
  readonly client?: KeptClient | undefined;
  /** For a server that does not register it. */
  readonly orElse?: KeptClient | undefined;
}

/** What an earlier try of the same sign-in has shown to be of no use. */
export type Refused = ReadonlySet<'cached' | 'document'>;

interface Earlier {
  readonly way: SignInWay;
  readonly kept: KeptSignIn | undefined;
  readonly refused: Refused;
}

/**
 * In this order: the client given, one registered before with the same server for the same way, a document about the client, a new
 * registration. An id that is the address of a document is given only where the server does neither of the last two (decision 0355).
 */
export function chooseClient(
  target: SignInTarget,
  found: Discovered,
  { way, kept, refused }: Earlier,
): ChosenClient {
  const { server } = found;
  const document = documentOf(target, way);
  const isRead = server['client_id_metadata_document_supported'] === true;
  const given = target.clientId === undefined ? undefined : givenClient(target, server);
  if (given !== undefined && (document === undefined || !(isRead || registers(server))))
    return { kind: 'given', client: given };
  const isSame = kept?.issuer === server.issuer && kept.way === way;
  if (isSame && kept.client.registered !== undefined && !refused.has('cached'))
    return { kind: 'cached', client: kept.client, orElse: isRead ? undefined : given };
  if (document !== undefined && isRead && !refused.has('document'))
    return { kind: 'document', client: { id: document, authMethod: 'none' } };
  return { kind: 'to-register', orElse: isRead ? undefined : given };
}

/** Where a document about the client stands: where that was said, and where a client without a secret is called so. */
function documentOf(
  { clientId: id, clientSecret, clientKey, clientMetadataUrl }: SignInTarget,
  way: SignInWay,
): string | undefined {
  if (id === undefined) return clientMetadataUrl;
  const isPerson = way === 'browser' || way === 'device';
  const isPublic = clientSecret === undefined && clientKey === undefined;
  return isPerson && isPublic && isDocument(id) ? id : undefined;
}

/** As drafts of the OAuth Client ID Metadata Document have it: an https URL with a path, and neither a fragment nor a login. */
function isDocument(id: string): boolean {
  const url = URL.parse(id);
  return (
    url?.protocol === 'https:' &&
    url.pathname !== '/' &&
    !id.includes('#') &&
    url.username + url.password === ''
  );
}

/** Whether the server says that clients can register (RFC 7591 §3). */
export function registers(server: oauth.AuthorizationServer): boolean {
  return typeof server.registration_endpoint === 'string';
}

function givenClient(target: SignInTarget, server: oauth.AuthorizationServer): KeptClient {
  const { clientId: id = '', clientSecret: secret, clientKey } = target;
  if (clientKey !== undefined) return { id, authMethod: 'private_key_jwt' };
  if (secret === undefined) return { id, authMethod: 'none' };
  const methods: unknown = server.token_endpoint_auth_methods_supported;
  const isPost =
    Array.isArray(methods) &&
    methods.includes('client_secret_post') &&
    !methods.includes('client_secret_basic');
  return { id, secret, authMethod: isPost ? 'client_secret_post' : 'client_secret_basic' };
}

interface Registering extends Pick<SignInServices, 'clock'> {
  readonly reach: Reach;
  readonly way: SignInWay;
  readonly callbackPort?: number | undefined;
}

/**
 * The client to sign in with: registers one where that was chosen, where its server has forgotten it, or where its secret ends within a
 * day or it was registered for too little. It is not renewed here: what is kept has to go on with the old one until this
 * sign-in holds (decision 0460). Errors as `registerClient`.
 */
export async function readyClient(
  chosen: ChosenClient,
  found: Discovered,
  { reach, way, callbackPort, clock }: Registering,
): Promise<KeptClient> {
  const { client } = chosen;
  const allowed = client?.registered?.scopes;
  const isEnough = allowed === undefined || found.scopes.every((one) => allowed.includes(one));
  // A server shows its own page for a client that it does not know, and nobody would come back from there.
  if (
    client !== undefined &&
    isEnough &&
    !endsSoon(client, clock.now()) &&
    (await isRegistered(client, reach))
  )
    return client;
  const asked = { server: found.server, way, scopes: found.scopes, callbackPort };
  return registerClient(asked, reach).catch((error: unknown) => {
    const isNo =
      error instanceof SkepError && error.code.startsWith('auth/') && error.code !== 'auth/unavailable';
    if (chosen.orElse !== undefined && isNo) return chosen.orElse;
    throw error;
  });
}

/** How a client proves at the token endpoint who it is. Fails with `auth/client-refused` where it lacks what it needs for that. */
export async function clientAuth(client: KeptClient, key: ClientKey | undefined): Promise<oauth.ClientAuth> {
  if (client.authMethod === 'private_key_jwt') {
    if (key === undefined) throw lacking(client, 'its private key');
    const { pem, algorithm, keyId } = key;
    const imported = await importPKCS8(pem, algorithm).catch(() => {
      throw lacking(client, `a private key for ${algorithm} (PKCS #8, PEM)`);
    });
    return oauth.PrivateKeyJwt(keyId === undefined ? imported : { key: imported, kid: keyId });
  }
  if (client.authMethod === 'none') return oauth.None();
  const { id, secret } = client;
  if (secret === undefined) throw lacking(client, 'its secret');
  if (client.authMethod === 'client_secret_post') return oauth.ClientSecretPost(secret);
  // The library encodes hyphens too.
  return (_server, _client, _body, headers) => headers.set('authorization', basicLogin(id, secret));
}

function lacking(client: KeptClient, what: string): SkepError {
  return new SkepError('auth/client-refused', { message: `client "${client.id}" lacks ${what}` });
}
