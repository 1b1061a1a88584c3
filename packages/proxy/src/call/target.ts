/** What the first line of a request asks for (RFC 9112 §3.2). */
export interface RequestTarget {
  /** Host and port, where the target is in absolute form. */
  readonly authority: string | undefined;
  /** Path and query; empty where the target is no path of ours, such as `*`. */
  readonly target: string;
}

const ABSOLUTE = /^http:\/\/([^/?#]*)(.*)$/iu;

/** Reads the origin form and the absolute form, which a server must accept as well (RFC 9112 §3.2). */
export function readTarget(url: string): RequestTarget {
  if (url.startsWith('/')) return { authority: undefined, target: url };
  const [, authority, rest = ''] = ABSOLUTE.exec(url) ?? [];
  if (authority === undefined) return { authority: undefined, target: '' };
  return { authority, target: rest.startsWith('/') ? rest : `/${rest}` };
}
