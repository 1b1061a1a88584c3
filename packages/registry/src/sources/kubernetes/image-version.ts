/** What a reference to an image says after its name; members that it does not have are undefined. */
export interface ImageVersion {
  readonly tag: string | undefined;
  readonly digest: string | undefined;
}

/** The tag and digest of `registry:5000/name:tag@sha256:…`. The port of a registry is no tag. */
export function imageVersion(reference: string): ImageVersion {
  const at = reference.indexOf('@');
  const digest = at < 0 ? undefined : reference.slice(at + 1);
  const named = at < 0 ? reference : reference.slice(0, at);
  const last = named.slice(named.lastIndexOf('/') + 1);
  const colon = last.indexOf(':');
  return {
    tag: colon < 0 || colon === last.length - 1 ? undefined : last.slice(colon + 1),
    digest: digest === '' ? undefined : digest,
  };
}
