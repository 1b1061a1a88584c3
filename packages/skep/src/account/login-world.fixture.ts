import { registryServer, type ScriptedAnswer, type SeenRequest } from './registry-server.fixture.ts';

/** A registry with a document about signing in, and an identity provider at another origin, both on this machine. */
interface LoginWorld {
  readonly registry: string;
  readonly idp: string;
  readonly ofRegistry: readonly SeenRequest[];
  readonly ofIdp: readonly SeenRequest[];
  /** What the registry offers besides, or instead; without it, there is but its RFC 9728 metadata. */
  offer: Record<string, unknown> | undefined;
  /** Registries there; undefined where it lists none. */
  registries: readonly string[] | undefined;
  /** False where it takes no token of the provider. */
  accepts: boolean;
  /** Members of the provider's metadata besides, or instead. */
  metadata: Record<string, unknown>;
  /** What the provider answers whoever asks for a token. */
  answerToken: ScriptedAnswer;
}

const WELL_KNOWN = 'GET /.well-known/skep-registry';

/** The provider, which the registry can also be itself, gives a token at once, by a code or to a service; the registry takes it and has the registry `acme`. */
export async function loginWorld(): Promise<LoginWorld> {
  const idp = await registryServer(({ line }) => ofProvider(line, world));
  const registry = await registryServer(({ line }): ScriptedAnswer => {
    if (line === WELL_KNOWN && world.offer !== undefined)
      return [
        200,
        { resource: world.registry, sign_in: [{ issuer: world.idp, client_id: 'skep-cli', ...world.offer }] },
      ];
    if (line === 'GET /.well-known/oauth-protected-resource')
      return [200, { resource: world.registry, authorization_servers: [world.idp] }];
    if (!world.accepts) return [401, { error: 'no' }];
    if (line === 'GET /v1/me') return [200, { subject: 'ann', roles: [] }];
    if (line === 'GET /v1/registries' && world.registries !== undefined)
      return [200, { registries: world.registries.map((name) => ({ name })) }];
    if (line.startsWith('GET /registry/acme/v0.1/servers')) return [401, { error: 'sign in' }];
    return ofProvider(line, { ...world, idp: world.registry });
  });
  const world: LoginWorld = {
    registry: registry.address,
    idp: idp.address,
    ofRegistry: registry.seen,
    ofIdp: idp.seen,
    offer: {},
    registries: ['acme'],
    accepts: true,
    metadata: {},
    answerToken: [200, { access_token: 'a-token', token_type: 'bearer', expires_in: 3_600 }],
  };
  return world;
}

function ofProvider(line: string, { idp, metadata, answerToken }: LoginWorld): ScriptedAnswer {
  if (line === 'GET /.well-known/openid-configuration') {
    return [
      200,
      {
        issuer: idp,
        token_endpoint: `${idp}/token`,
        revocation_endpoint: `${idp}/revoke`,
        authorization_endpoint: `${idp}/authorize`,
        device_authorization_endpoint: `${idp}/device`,
        ...metadata,
      },
    ];
  }
  if (line === 'POST /device') {
    const code = { device_code: 'd', user_code: 'ABCD', verification_uri: `${idp}/code` };
    return [200, { ...code, expires_in: 60, interval: 0.01 }];
  }
  if (line === 'POST /revoke') return [200];
  if (line === 'POST /register')
    return [201, { client_id: 'registered', token_endpoint_auth_method: 'none' }];
  return line === 'POST /token' ? answerToken : undefined;
}
