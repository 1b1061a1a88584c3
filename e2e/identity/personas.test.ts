import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseClaims } from '@skep/auth/claims/claims.ts';
import type { RoleRules } from '@skep/auth/claims/roles.ts';
import { authenticate } from '@skep/auth/resource/authenticate.ts';
import { TokenCache } from '@skep/auth/token/cache.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import type { Identity } from '@skep/auth/token/identity.ts';
import { createProvider } from '@skep/auth/token/provider.ts';
import { createVerifier, type TokenVerifier } from '@skep/auth/token/verifier.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { authorityOf, type Authority, type SignInMode } from '@skep/registry/access/authority.ts';
import { decideGate } from '@skep/registry/access/gate.ts';
import { decideVisibility } from '@skep/registry/access/visibility.ts';
import { CONTRACT_SWITCHES, describeCaller } from '../../packages/registry/src/access/authority.ts';
import { AUDIENCE, startIdentityProvider, type IdentityProvider } from '../fixtures/identity-provider.ts';
import { component, sharedData, title } from '../require.ts';

// Personas of the shared data with real tokens, from the provider to the decisions of the registry.

const data = await component('shared-data');
const file = path.join(sharedData, 'claims/personas.json');
const personas: { persona: string; claims: Record<string, unknown> }[] = data.available
  ? JSON.parse(readFileSync(file, 'utf8'))
  : [];

const rules: RoleRules = {
  superAdmin: [parseClaims({ role: 'super-admin' })],
  manageSources: [parseClaims({ role: 'admin' })],
  manageRegistries: [parseClaims({ role: 'admin' })],
  manageEntries: [parseClaims({ role: 'writer' })],
};
const registries = {
  'acme-all': parseClaims({ org: 'acme' }),
  'acme-platform': parseClaims({ org: 'acme', team: 'platform' }),
  'acme-data': parseClaims({ org: 'acme', team: 'data' }),
};
const entries = {
  shared: '{"org":["acme"]}',
  platform: '{"org":["acme"],"team":["platform"]}',
  data: '{"org":["acme"],"team":["data"]}',
  unlabeled: '',
};

interface Sight {
  readonly roles: readonly string[];
  readonly registries: readonly string[];
  readonly entries: readonly string[];
}
const everything = { registries: Object.keys(registries), entries: Object.keys(entries) };
const platform = { registries: ['acme-all', 'acme-platform'], entries: ['shared', 'platform'] };
const managing = ['manageSources', 'manageRegistries'];
const FULL: Readonly<Record<string, Sight>> = {
  'super-admin': { roles: ['superAdmin'], ...everything },
  'platform-admin': { roles: managing, ...platform },
  'platform-writer': { roles: ['manageEntries'], ...platform },
  'data-writer': {
    roles: ['manageEntries'],
    registries: ['acme-all', 'acme-data'],
    entries: ['shared', 'data'],
  },
  outsider: { roles: managing, registries: [], entries: [] },
};

let idp: IdentityProvider;
let verifier: TokenVerifier;

beforeAll(async () => {
  idp = await startIdentityProvider();
  const provider = await createProvider(
    {
      name: 'test',
      issuerUrl: idp.issuer,
      introspectionUrl: idp.introspection.url,
      clientId: idp.introspection.clientId,
      clientSecret: idp.introspection.clientSecret,
      allowPrivateIP: true,
      plainHttp: 'loopback',
      rules: { audience: AUDIENCE, leewayS: 5, subject: 'optional' },
      issuerMatch: 'exact',
      forcedRefreshEveryMs: 60_000,
    },
    { clock: systemClock, random: Math.random, log: silentLog },
  );
  const cache = new TokenCache({ now: Date.now, capMs: 60_000, maxCharacters: 1_000_000 });
  verifier = createVerifier([provider], cache);
});
afterAll(async () => {
  verifier.close();
  await idp.stop();
});

async function signIn(
  claims: Readonly<Record<string, unknown>>,
  format: 'jwt' | 'opaque',
): Promise<Identity> {
  const { aud: _set, ...own } = claims;
  const answer = await authenticate([`Bearer ${await idp.token(own, { format })}`], verifier);
  if (answer.kind !== 'identity') throw new Error(`not accepted: ${JSON.stringify(answer)}`);
  return answer.identity;
}

function sightOf(authority: Authority): Sight {
  return {
    roles: describeCaller(authority).roles,
    registries: Object.entries(registries).flatMap(([name, held]) =>
      decideGate(authority, held).allowed ? [name] : [],
    ),
    entries: Object.entries(entries).flatMap(([name, held]) =>
      decideVisibility(authority, held).allowed ? [name] : [],
    ),
  };
}

describe.skipIf(!data.available)(title('personas', data), () => {
  const full: SignInMode = { kind: 'full', rules, switches: CONTRACT_SWITCHES };

  describe.each(['jwt', 'opaque'] as const)('with a token as %s', (format) => {
    test.each(personas)('$persona in full authorization', async ({ persona, claims }) => {
      const identity = await signIn(claims, format);
      expect(sightOf(authorityOf(full, identity))).toEqual(FULL[persona]);
    });

    test.each(personas)('$persona in auth-only mode sees everything and has no roles', async ({ claims }) => {
      const identity = await signIn(claims, format);
      expect(sightOf(authorityOf({ kind: 'auth-only' }, identity))).toEqual({ roles: [], ...everything });
    });
  });
});
