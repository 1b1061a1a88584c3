import { z } from 'zod';
import { claims } from './texts.ts';

const text = z.string().min(1, 'must not be empty');
const rules = z.array(claims).optional();

const provider = z.strictObject({
  name: text,
  issuerUrl: text,
  audience: text,
  jwksUrl: text.optional(),
  introspectionUrl: text.optional(),
  clientId: text.optional(),
  clientSecretFile: text.optional(),
  caCertPath: text.optional(),
  authTokenFile: text.optional(),
  allowPrivateIP: z.boolean().optional(),
});

const authz = z.strictObject({
  preset: z.enum(['strict']).optional(),
  requirePublishClaims: z.boolean().optional(),
  unlabeled: z.enum(['open', 'deny']).optional(),
  arrayMatch: z.enum(['all', 'any']).optional(),
  managedSourceGate: z.boolean().optional(),
  roles: z
    .strictObject({
      superAdmin: rules,
      manageSources: rules,
      manageRegistries: rules,
      manageEntries: rules,
    })
    .optional(),
});

/** `auth` of the configuration (specification §1.3.4 and the switches of §0). */
export const authShape = z.strictObject({
  mode: z.enum(['anonymous', 'oauth']).optional(),
  publicPaths: z.array(z.string()).optional(),
  oauth: z
    .strictObject({
      resourceUrl: text.optional(),
      realm: z.string().optional(),
      scopesSupported: z.array(text).optional(),
      providers: z.array(provider).min(1, 'must hold at least one identity provider'),
    })
    .optional(),
  // `authz:` with nothing behind it is a present key, so it turns authorization on and not off (§0, D14).
  authz: authz.nullable().optional(),
});

export type AuthShape = z.infer<typeof authShape>;
