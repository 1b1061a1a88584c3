import { SkepError } from '@skep/core/errors/skep-error.ts';
import { redactUrl } from '@skep/core/log/redact.ts';
import { takeUserInfo } from '../url-secrets.ts';

/** A repository that git may be asked for. `url` holds no password. */
export interface GitRepository {
  readonly transport: 'http' | 'ssh';
  /** What git gets. For http(s) without user information. */
  readonly url: string;
  /** Lower case; an IPv6 address without brackets. */
  readonly host: string;
  readonly port: number;
  readonly credentials?: GitCredentials;
}

export interface GitCredentials {
  readonly username: string;
  readonly password: string;
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443, 'ssh:': 22 };
/** `user@host:path`; two characters at least, because `c:/repo` is a folder for git on Windows. */
const SCP_LIKE = /^(?:[A-Za-z0-9_][\w.-]*@)?([A-Za-z0-9][A-Za-z0-9.-]+):(?!\/\/)(?!-)[^\s:][^\s]*$/u;
const HOST = /^[a-z0-9][a-z0-9.-]*$|^\[[0-9a-f:.]+\]$/u;

/**
 * Admits `http://`, `https://`, `ssh://` and the scp-like `user@host:path` (gitglossary, "git urls"), and nothing else:
 * `file://`, `ext::` and plain paths would let a configured source read this machine or run programs on it, and a
 * leading dash would be an option. Fails with `source/invalid-repository`.
 */
export function parseRepository(address: string): GitRepository {
  const scp = SCP_LIKE.exec(address);
  if (scp !== null) {
    return { transport: 'ssh', url: address, host: scp[1]?.toLowerCase() ?? '', port: 22 };
  }
  const url = URL.parse(address);
  const port = DEFAULT_PORTS[url?.protocol ?? ''];
  // Node's parser leaves ssh hosts as they are written, so they are checked here.
  if (url === null || port === undefined || !HOST.test(url.hostname.toLowerCase())) {
    throw refused(address, 'is not an http, https or ssh address');
  }
  if (/\s/u.test(address)) throw refused(address, 'has white space in it');
  const place = {
    host: url.hostname.toLowerCase().replace(/^\[|\]$/gu, ''),
    port: url.port === '' ? port : Number(url.port),
  };
  return url.protocol === 'ssh:' ? sshRepository(url, place) : httpRepository(url, place);
}

type Place = Pick<GitRepository, 'host' | 'port'>;

function sshRepository(url: URL, place: Place): GitRepository {
  if (url.password !== '') throw refused(url.href, 'has a password, which ssh does not take');
  if (url.username.startsWith('-') || url.pathname.startsWith('/-')) {
    throw refused(url.href, 'has a part that begins with a dash');
  }
  return { transport: 'ssh', url: url.href, ...place };
}

function httpRepository(url: URL, place: Place): GitRepository {
  const user = takeUserInfo(url);
  const bare: GitRepository = { transport: 'http', url: url.href, ...place };
  if (user === undefined) return bare;
  const credentials = { username: decoded(user.username, url), password: decoded(user.password, url) };
  // A line feed would end the value in git's credential protocol (git-credential(1)) and begin another one.
  if (/[\r\n\0]/u.test(credentials.username + credentials.password)) {
    throw refused(url.href, 'has a line break in its user information');
  }
  return { ...bare, credentials };
}

function decoded(text: string, url: URL): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw refused(url.href, 'has user information that is not percent-encoded correctly');
  }
}

function refused(address: string, why: string): SkepError {
  return new SkepError('source/invalid-repository', { message: `"${redactUrl(address)}" ${why}` });
}
