import { SkepError } from '@skep/core/errors/skep-error.ts';

// First character alphanumeric and at least two characters: the engine's own rule for container names.
const VALID = /^[A-Za-z0-9][A-Za-z0-9._-]{1,99}$/;
const MAX_LENGTH = 100;

/** True when `name` may name a workload, its container and its state files. */
export function isWorkloadName(name: string): boolean {
  return VALID.test(name) && !name.includes('..');
}

/** The name that a person wrote; fails with `run/invalid-name`. */
export function checkWorkloadName(name: string): string {
  if (isWorkloadName(name)) return name;
  throw new SkepError('run/invalid-name', { message: `invalid workload name ${JSON.stringify(name)}` });
}

/** A valid name of any text, for names that Skep generates (docs/behaviour/run.md#names). */
export function toWorkloadName(text: string): string {
  const cleaned = text
    .replaceAll(/[^A-Za-z0-9._-]+/g, '-')
    .replaceAll(/\.{2,}/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, MAX_LENGTH)
    .replace(/[^A-Za-z0-9]+$/, '');
  if (cleaned.length >= 2) return cleaned;
  return cleaned === '' ? 'workload' : `workload-${cleaned}`;
}

/** `npx://@org/x` → `org-x`, `go://github.com/u/r@v1.0.0` → `github-com-u-r-v1-0-0`. */
export function nameOfPackage(reference: string): string {
  const path = reference
    .replace(/^[a-z]+:\/\//, '')
    .replace(/^\.\//, '')
    .replace(/^\.\.\//, '')
    .replaceAll(/[/@.]/g, '-')
    .replace(/^-/, '');
  return path === '' || path === '-' ? 'skep-container' : toWorkloadName(path);
}

/** `io.github.x/y` → `io-github-x-y`. */
export function nameOfEntry(name: string): string {
  return toWorkloadName(name.replaceAll(/[./]/g, '-'));
}

/** The label before the last of a host: `api.github.com` → `github`; an address, and a host of one label, as it is. */
export function nameOfHost({ hostname }: URL): string {
  const labels = hostname.split('.');
  const isAddress = /^[\d.]+$|:/.test(hostname);
  return toWorkloadName((isAddress ? undefined : labels.at(-2)) ?? hostname.replaceAll(/[.:]/g, '-'));
}

/** The last two path segments without tag and port: `a/b/c:tag` → `b-c`, `host:5000/image` → `host-image`. */
export function nameOfImage(reference: string): string {
  const lastSlash = reference.lastIndexOf('/');
  const lastColon = reference.lastIndexOf(':');
  const untagged = lastColon > lastSlash ? reference.slice(0, lastColon) : reference;
  const [first = '', second] = untagged.split('/').slice(-2);
  const joined = second === undefined ? first : `${first.replace(/:\d+$/, '')}-${second}`;
  return toWorkloadName(joined.replaceAll(/[^A-Za-z0-9-]/g, '-'));
}
