/**
 * True for a Go import path with a host in front (`example.org/team/server/cmd/x`), after the rules of
 * `module.CheckImportPath`: non-empty elements of ASCII letters, digits and `-._~`, none starting or ending in a dot.
 */
export function isGoPath(path: string): boolean {
  const [host = '', ...rest] = path.split('/');
  return (
    path.length <= 512 && GO_HOST.test(host) && rest.length > 0 && rest.every((part) => GO_PART.test(part))
  );
}

/** True for a module version (`v1.2.3`), branch or commit, without a slash. */
export function isGoVersion(version: string): boolean {
  return version.length <= 128 && GO_VERSION.test(version);
}

const GO_HOST = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+$/;
const GO_PART = /^[A-Za-z0-9_~-](?:[A-Za-z0-9._~-]*[A-Za-z0-9_~-])?$/;
const GO_VERSION = /^[A-Za-z0-9][A-Za-z0-9.+_-]*$/;
