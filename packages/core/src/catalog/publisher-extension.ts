import { z } from 'zod';
import { SkepError } from '../errors/skep-error.ts';
import { faultLine } from './checked-text.ts';
import { extensionBlocks } from './extension-summary.ts';
import type { ServerDocument } from './server-json.ts';
import { VARIABLE_NAME } from './variable-name.ts';

const texts = z.array(z.string());
const port = z.number().int().min(1).max(65535);

const outbound = z.looseObject({
  insecure_allow_all: z.boolean().nullish(),
  allow_host: texts.nullish(),
  allow_port: z.array(port).nullish(),
});

const permissions = z.looseObject({
  name: z.string().nullish(),
  read: texts.nullish(),
  write: texts.nullish(),
  privileged: z.boolean().nullish(),
  network: z
    .looseObject({
      mode: z.string().nullish(),
      outbound: outbound.nullish(),
      inbound: z.looseObject({ allow_host: texts.nullish() }).nullish(),
    })
    .nullish(),
});

const environmentVariable = z.looseObject({
  name: z.string().regex(VARIABLE_NAME),
  description: z.string().nullish(),
  required: z.boolean().nullish(),
  secret: z.boolean().nullish(),
  default: z.string().nullish(),
});

const oauthConfig = z.looseObject({
  issuer: z.string().nullish(),
  authorize_url: z.string().nullish(),
  token_url: z.string().nullish(),
  client_id: z.string().nullish(),
  scopes: texts.nullish(),
  use_pkce: z.boolean().nullish(),
  oauth_params: z.record(z.string(), z.string()).nullish(),
  callback_port: port.nullish(),
  resource: z.string().nullish(),
});

/**
 * Members that decide how a server runs: one of a wrong type is an error, never silently dropped. Those for
 * display are left out; see extensionSummary.
 */
const extension = z.object({
  permissions: permissions.nullish(),
  args: texts.nullish(),
  env_vars: z.array(environmentVariable).nullish(),
  proxy_port: port.nullish(),
  target_port: port.nullish(),
  stateless: z.boolean().nullish(),
  oauth_config: oauthConfig.nullish(),
  provenance: z.record(z.string(), z.unknown()).nullish(),
  tools: texts.nullish(),
});

export type PublisherExtension = z.infer<typeof extension>;
export type ExtensionPermissions = z.infer<typeof permissions>;
export type OAuthConfig = z.infer<typeof oauthConfig>;

/** The block of `key`; a document with a single package or remote may key it differently. */
function blockOf(document: ServerDocument, key: string): unknown {
  const all = extensionBlocks(document);
  if (Object.hasOwn(all, key)) return all[key];
  const targets = (document.packages?.length ?? 0) + (document.remotes?.length ?? 0);
  return targets === 1 ? Object.values(all)[0] : undefined;
}

/**
 * The extension of one package (`key` is its identifier) or remote (its URL), empty when there is none.
 * Throws `catalog/invalid-extension` when a member that decides how the server runs has a wrong type: a permission
 * that cannot be read must not turn into the default one.
 */
export function publisherExtension(document: ServerDocument, key: string): PublisherExtension {
  const decoded = extension.safeParse(blockOf(document, key) ?? {});
  if (decoded.success) return decoded.data;
  throw new SkepError('catalog/invalid-extension', {
    message: `the publisher extension of "${document.name}" is invalid: ${faultLine(decoded.error)}`,
    detail: { server: document.name, key },
  });
}
