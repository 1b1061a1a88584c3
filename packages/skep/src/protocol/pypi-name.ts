/** True for a distribution name of PEP 508: letters, digits and inner `-`, `_`, `.`. */
export function isPypiName(name: string): boolean {
  return name.length <= 128 && PYPI_NAME.test(name);
}

/** True for one exact version as PEP 440 spells it; operators, extras and URLs are not accepted. */
export function isPypiVersion(version: string): boolean {
  return version.length <= 128 && PYPI_VERSION.test(version);
}

const PYPI_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$/;
const PYPI_VERSION = /^[A-Za-z0-9][A-Za-z0-9.+_!-]*$/;
