/** One version after PEP 440, as numbers that compare in its order. */
interface Version {
  readonly epoch: number;
  readonly release: readonly number[];
  /** Development releases come first, then alpha, beta, candidates, and then what is none of them. */
  readonly pre: readonly [stage: number, number: number];
  readonly post: number;
  readonly dev: number;
  readonly local: string;
}

const VERSION =
  /^v?(?:(\d{1,15})!)?(\d{1,15}(?:\.\d{1,15})*)(?:[-_.]?(alpha|a|beta|b|preview|pre|c|rc)[-_.]?(\d{1,15})?)?(?:-(\d{1,15})|[-_.]?(post|rev|r)[-_.]?(\d{1,15})?)?([-_.]?dev[-_.]?(\d{1,15})?)?(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?$/i;

const STAGES: Readonly<Record<string, number>> = { a: 1, alpha: 1, b: 2, beta: 2, c: 3, rc: 3, pre: 3, preview: 3 }; // prettier-ignore
const FINAL = 4;

/** Undefined for what is no version of PEP 440. */
function parseVersion(text: string): Version | undefined {
  const found = VERSION.exec(text.trim());
  if (found === null) return undefined;
  const [, epoch = '0', release = '', stage, pre = '0', implicit, posted, post = '0', dev, devNumber = '0', local = ''] =
    found; // prettier-ignore
  const isPost = implicit !== undefined || posted !== undefined;
  const early = dev !== undefined && !isPost ? 0 : FINAL;
  return {
    epoch: Number(epoch),
    release: release.split('.').map(Number),
    pre: stage === undefined ? [early, 0] : [STAGES[stage.toLowerCase()] ?? FINAL, Number(pre)],
    post: isPost ? Number(implicit ?? post) : -1,
    dev: dev === undefined ? Number.POSITIVE_INFINITY : Number(devNumber),
    local: local.toLowerCase(),
  };
}

/** True for what PEP 440 calls a version. */
export function isPythonVersion(text: string): boolean {
  return parseVersion(text) !== undefined;
}

/** True for a development, alpha, beta or candidate release. */
export function isPreRelease(text: string): boolean {
  const version = parseVersion(text);
  return version !== undefined && (version.pre[0] !== FINAL || version.dev !== Number.POSITIVE_INFINITY);
}

/** Negative, zero or positive, in the order of PEP 440; what is no version comes first. */
export function compareVersions(left: string, right: string): number {
  const [a, b] = [parseVersion(left), parseVersion(right)];
  if (a === undefined || b === undefined) return Number(a !== undefined) - Number(b !== undefined);
  return compareParsed(a, b);
}

function compareParsed(a: Version, b: Version): number {
  const numbers = [
    [a.epoch, b.epoch],
    ...Array.from({ length: Math.max(a.release.length, b.release.length) }, (_, at) => [
      a.release[at] ?? 0,
      b.release[at] ?? 0,
    ]),
    [a.pre[0], b.pre[0]],
    [a.pre[1], b.pre[1]],
    [a.post, b.post],
    [a.dev, b.dev],
  ];
  const differing = numbers.find(([one, other]) => one !== other);
  if (differing !== undefined) return (differing[0] ?? 0) < (differing[1] ?? 0) ? -1 : 1;
  if (a.local === b.local) return 0;
  return a.local < b.local ? -1 : 1;
}

const CLAUSE = /^(~=|===?|!=|<=|>=|<|>)\s*(.+?)$/;

/**
 * True when a version is among those that a set of specifiers (`>=3.10,!=3.11.*`) allows, as an index says it of Python.
 * A clause that cannot be read allows everything, as for pip.
 */
export function allows(specifiers: string, version: string): boolean {
  return specifiers.split(',').every((clause) => allowsClause(clause.trim(), version));
}

function allowsClause(clause: string, version: string): boolean {
  const [, operator = '', wanted = ''] = CLAUSE.exec(clause) ?? [];
  const prefix = /^(.+)\.\*$/.exec(wanted)?.[1];
  const [a, b] = [parseVersion(version), parseVersion(prefix ?? wanted)];
  if (a === undefined || b === undefined) return true;
  const begins = (release: readonly number[]): boolean =>
    a.epoch === b.epoch && release.every((number, at) => (a.release[at] ?? 0) === number);
  if (prefix !== undefined && operator === '==') return begins(b.release);
  if (prefix !== undefined && operator === '!=') return !begins(b.release);
  const order = compareParsed(a, b);
  if (operator === '~=') return order >= 0 && begins(b.release.slice(0, -1));
  if (operator === '>=') return order >= 0;
  if (operator === '<=') return order <= 0;
  if (operator === '>') return order > 0;
  if (operator === '<') return order < 0;
  return operator === '!=' ? order !== 0 : order === 0;
}
