/**
 * One total order over version strings, used to find the newest. Versions that read as semver (leniently: a leading
 * `v`, missing or additional numeric parts, leading zeros) follow semver 2.0 §11 precedence; a pre-release is not
 * demoted below older releases. Every other string comes before all of those and is ordered by its characters.
 * Comparing a semver and another string by characters, as some registries do, gives cycles (`9.0.0 < 10.0.0 < 5x < 9.0.0`).
 */
interface Parsed {
  readonly numbers: readonly string[];
  /** Empty for a release. */
  readonly preRelease: readonly string[];
}

const LENIENT =
  /^v?(\d+(?:\.\d+)*)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?$/;

function parse(version: string): Parsed | undefined {
  const match = LENIENT.exec(version);
  if (match?.[1] === undefined) return undefined;
  return { numbers: match[1].split('.'), preRelease: match[2]?.split('.') ?? [] };
}

function byText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** Digit strings of any length, so that neither date versions nor hostile ones lose precision. */
function byNumber(a: string, b: string): number {
  const left = a.replace(/^0+/, '');
  const right = b.replace(/^0+/, '');
  return left.length === right.length ? byText(left, right) : left.length - right.length;
}

function byNumbers(a: readonly string[], b: readonly string[]): number {
  for (let i = 0; i < Math.max(a.length, b.length); i++) {
    const order = byNumber(a[i] ?? '0', b[i] ?? '0');
    if (order !== 0) return order;
  }
  return 0;
}

/** Semver §11.4: numeric identifiers below alphanumeric ones; a longer list wins when all before are equal. */
function byIdentifier(a: string, b: string): number {
  const aIsNumber = /^\d+$/.test(a);
  const bIsNumber = /^\d+$/.test(b);
  if (aIsNumber && bIsNumber) return byNumber(a, b);
  if (aIsNumber !== bIsNumber) return aIsNumber ? -1 : 1;
  return byText(a, b);
}

function byPreRelease(a: readonly string[], b: readonly string[]): number {
  if (a.length === 0 || b.length === 0) return b.length - a.length;
  for (const [i, left] of a.entries()) {
    const right = b[i];
    if (right === undefined) return 1;
    const order = byIdentifier(left, right);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

/**
 * Precedence only: 0 for versions that differ in build metadata, a leading `v` or padding zeros (`1.0` and `v1.0.0`).
 * Use it to ask "is this strictly newer?".
 */
export function comparePrecedence(a: string, b: string): number {
  const left = parse(a);
  const right = parse(b);
  if (left === undefined && right === undefined) return byText(a, b);
  if (left === undefined) return -1;
  if (right === undefined) return 1;
  const order = byNumbers(left.numbers, right.numbers);
  return Math.sign(order === 0 ? byPreRelease(left.preRelease, right.preRelease) : order);
}

/** Total order: precedence, then characters, so that the newest of a set never depends on the order of the set. */
export function compareVersions(a: string, b: string): number {
  return comparePrecedence(a, b) || byText(a, b);
}

/** The newest of `versions`, or undefined when there is none. */
export function newestVersion(versions: Iterable<string>): string | undefined {
  let newest: string | undefined;
  for (const version of versions) {
    if (newest === undefined || compareVersions(version, newest) > 0) newest = version;
  }
  return newest;
}
