import { SkepError } from '../errors/skep-error.ts';
import * as shape from '../settings/shape.ts';
import { extensionBlocks } from './extension-summary.ts';
import type { ServerDocument } from './server-json.ts';
import { VARIABLE_NAME } from './variable-name.ts';

const texts = shape.nullish(shape.listOf(shape.text));
const text = shape.nullish(shape.text);
const flag = shape.nullish(shape.bool);
const port = shape.wholeNumber(1, 65_535);

const permissions = shape.holding({
  name: text,
  read: texts,
  write: texts,
  privileged: flag,
  network: shape.nullish(
    shape.holding({
      mode: text,
      outbound: shape.nullish(
        shape.holding({
          insecure_allow_all: flag,
          allow_host: texts,
          allow_port: shape.nullish(shape.listOf(port)),
        }),
      ),
      inbound: shape.nullish(shape.holding({ allow_host: texts })),
    }),
  ),
});

const environmentVariable = shape.holding({
  name: shape.textThat((name) => VARIABLE_NAME.test(name), 'is no name of an environment variable'),
  description: text,
  required: flag,
  secret: flag,
  default: text,
});

const oauthConfig = shape.holding({
  issuer: text,
  authorize_url: text,
  token_url: text,
  client_id: text,
  scopes: texts,
  use_pkce: flag,
  oauth_params: shape.nullish(shape.recordOf(shape.text)),
  callback_port: shape.nullish(port),
  resource: text,
});

/** Who signed an image, as the catalogue says; what is absent is not compared. */
const provenance = shape.holding({
  sigstore_url: text,
  repository_uri: text,
  repository_ref: text,
  signer_identity: text,
  runner_environment: text,
  cert_issuer: text,
  attestation: shape.nullish(shape.holding({ predicate_type: text, predicate: shape.anything })),
});

/**
 * Members that decide how a server runs: one of a wrong type is an error, never silently dropped. Those for
 * display are left out; see extensionSummary.
 */
const extension = shape.members({
  permissions: shape.nullish(permissions),
  args: texts,
  env_vars: shape.nullish(shape.listOf(environmentVariable)),
  proxy_port: shape.nullish(port),
  target_port: shape.nullish(port),
  stateless: flag,
  oauth_config: shape.nullish(oauthConfig),
  provenance: shape.nullish(provenance),
  tools: texts,
});

export type PublisherExtension = shape.ShapeType<typeof extension>;
export type ExtensionPermissions = shape.ShapeType<typeof permissions>;
export type ExtensionProvenance = shape.ShapeType<typeof provenance>;
export type OAuthConfig = shape.ShapeType<typeof oauthConfig>;

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
  return extension(blockOf(document, key) ?? {}, (why, ...path) => {
    const at = path.length === 0 ? '' : `${path.join('.')} `;
    throw new SkepError('catalog/invalid-extension', {
      message: `the publisher extension of "${document.name}" is invalid: ${at}${why}`,
      detail: { server: document.name, key },
    });
  });
}
