import type { Code } from '@skep/core/errors/codes.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { redactText } from '@skep/core/log/redact.ts';

/** What git and ssh write (with LC_ALL=C), and what it means; the first row that fits counts. */
const ROWS: readonly (readonly [RegExp, Code, string])[] = [
  // Its own words only: those of the remote are behind "remote: ".
  [
    /^(?:fatal|error): (?:out of memory|attempting to allocate|cannot allocate|inflate: out of memory)/imu,
    'source/too-large',
    'gives more than fits into the memory that git may take',
  ],
  [
    /authentication failed|could not read (?:username|password)|error: 40[13]\b|permission denied \(|invalid credentials/iu,
    'source/auth-failed',
    'refused the credentials, or wants some',
  ],
  [/host key verification failed/iu, 'source/unreachable', 'has a host key that this machine does not know'],
  [
    /repository '?.*'? not found|error: 404\b|repository not found|does not appear to be a git repository|not valid: is this a git repository/iu,
    'source/repository-not-found',
    'is no repository',
  ],
  [
    /could not resolve host|connection refused|connection reset|timed out|failed to connect|couldn't connect|no route to host|network is unreachable|operation too slow/iu,
    'source/unreachable',
    'does not answer',
  ],
  [/certificate|ssl|gnutls/iu, 'source/unreachable', 'has a certificate that is not trusted'],
];

/** The remote has no such object. */
export function lacksObject(stderr: string): boolean {
  return /not our ref|couldn't find remote ref/iu.test(stderr);
}

/** The remote gives out what its branches and tags point at, and nothing else by its id (protocol versions 0 and 1). */
export function withholdsObject(stderr: string): boolean {
  return /unadvertised object/iu.test(stderr);
}

/** The error for a failed git command about `url`, which holds no secret; what git wrote is redacted all the same. */
export function gitFailure(url: string, stderr: string): SkepError {
  const lines = stderr.split('\n').map((line) => line.trim());
  const said = redactText(
    lines.findLast((line) => /^(?:fatal|error):/u.test(line)) ?? lines.findLast(Boolean) ?? '',
  );
  const [, code, what] = ROWS.find(([pattern]) => pattern.test(stderr)) ?? [];
  const detail = { git: redactText(stderr.trim()).slice(-2_000) };
  if (code !== undefined) return new SkepError(code, { message: `"${url}" ${what ?? ''}`, detail });
  return new SkepError('source/git-failed', {
    message: `git could not fetch "${url}": ${said.slice(0, 300) || 'it said nothing'}`,
    detail,
  });
}
