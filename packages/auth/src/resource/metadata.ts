import { SkepError } from '@skep/core/errors/skep-error.ts';

/** RFC 9728 §2, the members that Skep fills. */
export interface ResourceMetadata {
  readonly resource: string;
  /** Left out where none is known: no member may be an empty list (RFC 9728 §3.2). */
  readonly authorization_servers?: readonly string[];
  readonly bearer_methods_supported: readonly ['header'];
  readonly scopes_supported?: readonly string[];
}

export interface ResourceOptions {
  /** The protected resource: an absolute URL as clients know it. */
  readonly resource: string;
  readonly issuers: readonly string[];
  readonly scopes?: readonly string[] | undefined;
}

const WELL_KNOWN = '/.well-known/oauth-protected-resource';

/** True for where such a document is: the well-known path, with or without a path of the resource behind it. */
export function isMetadataPath(path: string): boolean {
  return path === WELL_KNOWN || path.startsWith(`${WELL_KNOWN}/`);
}

/** The document at `metadataUrl`, by which clients find where to sign in. */
export function resourceMetadata(options: ResourceOptions): ResourceMetadata {
  return {
    resource: options.resource,
    ...(options.issuers.length === 0 ? {} : { authorization_servers: options.issuers }),
    bearer_methods_supported: ['header'],
    ...(options.scopes === undefined ? {} : { scopes_supported: options.scopes }),
  };
}

/**
 * Where the document of a resource is (RFC 9728 §3.1): the well-known path goes between host and path of the resource;
 * query and fragment are dropped. Made from configuration, never from a request header. Fails with `auth/invalid-provider`.
 */
export function metadataUrl(resource: string): string {
  const url = URL.canParse(resource) ? new URL(resource) : undefined;
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new SkepError('auth/invalid-provider', {
      message: `resource URL "${resource}" is not an absolute http or https URL`,
    });
  }
  return `${url.origin}${WELL_KNOWN}${url.pathname === '/' ? '' : url.pathname}`;
}
