/** What a reference may lead to. */
export interface Targets {
  /** Numbers of the decision records. */
  readonly decisions: ReadonlySet<string>;
  /** Anchors of each page, by its path from the repository's root. */
  readonly pages: ReadonlyMap<string, ReadonlySet<string>>;
}

/** Names of public standards whose sections may be cited, as they stand before a section sign. */
const STANDARD =
  /(?:RFC \d+|JSON-RPC 2\.0|MCP [\d-]+|[Ss]emver(?: 2\.0)?|POSIX[.\d-]*|ECMA-\d+|W3C Trace Context|OpenID Connect Discovery 1\.0|OpenAPI [\d.]+)(?:,? §[\d.]+)*,?(?: and)? $/;

/** How texts outside the repository were cited. Whoever reads this cannot open them. */
const OUTSIDE: readonly RegExp[] = [
  /\bspec (?:run-|registry)[a-z]*/,
  /\b(?:registry|proxy|workload|the) specification(?!s)\b/i,
  /\bspecification §/i,
  /\bcontract, "/,
  /\bthe seed\b/i,
  /\bdesign §/,
  /\bdesign\.md\b/,
  /\(D\d{1,2}\b/,
];

/**
 * References of one text that lead nowhere, one line each: a section sign without a public standard before it, a page or
 * heading of `docs` that is not there, a decision without a record, a text outside the repository (docs/prose.md).
 */
export function referenceFaults(text: string, { decisions, pages }: Targets): readonly string[] {
  // A comment breaks its lines anywhere, between a standard and its section too.
  const flat = text.replaceAll(/\n\s*(?:\*|\/\/)?\s*/g, ' ');
  return [
    ...[...flat.matchAll(/§[\d.]*/g)].flatMap(({ 0: section, index }) =>
      STANDARD.test(flat.slice(Math.max(0, index - 60), index)) ? [] : [`"${section}" without a standard`],
    ),
    ...[...flat.matchAll(/\bdocs\/([\w/-]+\.md)(?:#([\w-]+))?/g)].flatMap(
      ({ 0: found, 1: file = '', 2: anchor }) =>
        resolves(pages.get(`docs/${file}`), anchor) ? [] : [`"${found}" leads nowhere`],
    ),
    ...[...flat.matchAll(/\b[Dd]ecisions?[ /](\d{4})\b/g)].flatMap(({ 0: found, 1: number = '' }) =>
      decisions.has(number) ? [] : [`"${found}" has no record`],
    ),
    ...OUTSIDE.flatMap((pattern) => {
      const found = pattern.exec(flat)?.[0];
      return found === undefined ? [] : [`"${found}" is a text outside the repository`];
    }),
  ];
}

const PACKAGES = /^(core|auth|proxy|registry|skep)\//;
const NAMED_PATH = /`((?:core|auth|proxy|registry|skep|e2e|bench|scripts|docs)\/[\w./-]+)`/g;

/**
 * Files and folders that a page names in backticks and that are not there. Those of a package are written as
 * `registry/api/routes.ts` and lie in `packages/registry/src`.
 */
export function pathFaults(page: string, exists: (file: string) => boolean): readonly string[] {
  return [...page.matchAll(NAMED_PATH)].flatMap(({ 1: named = '' }) =>
    exists(named.replace(PACKAGES, 'packages/$1/src/')) ? [] : [`"${named}" is not there`],
  );
}

/** The anchors that GitHub makes of the headings of a page. */
export function anchorsOf(page: string): ReadonlySet<string> {
  const headings = page.split('\n').filter((line) => /^#{1,6} /.test(line));
  return new Set(
    headings.map((line) =>
      line
        .replace(/^#+ /, '')
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

function resolves(anchors: ReadonlySet<string> | undefined, anchor: string | undefined): boolean {
  return anchors !== undefined && (anchor === undefined || anchors.has(anchor));
}
