import { isUtf8 } from 'node:buffer';
import { isRecord } from '../json/is-record.ts';
import { isDeeperThan } from '../json/scan.ts';
import { detectFormat, listedEntries, listedServers, type CatalogueFormat } from './catalogue-format.ts';
import { openDocument } from './catalogue-document.ts';
import { MAX_DEPTH } from './catalogue-text.ts';
import type { ServerEntry } from './entry.ts';
import { serverNameFault, versionFault } from './entry-name.ts';
import type { ServerDocument } from './server-json.ts';

/** Whatever it is made of, this little fits into memory; larger catalogues are looked at before they are parsed. */
const MAX_BYTES = 16 * 1024 * 1024;

/**
 * The servers of a catalogue in which nothing is wrong, as `readCatalogue` gives them, in a third of its time and without
 * zod; `official` is left out. Undefined for every other catalogue, which `readCatalogue` has to judge: formats without
 * lists, entries that are left out, members that occur twice, texts that nobody's program wrote, and whatever is no catalogue.
 */
export function readServersQuickly(bytes: Buffer): readonly ServerEntry[] | undefined {
  const value = parseOrdinary(bytes);
  const format = detectFormat(value);
  if (typeof format !== 'string') return undefined;
  const documents = listedServers(format, value);
  if (documents === undefined || documents.length === 0) return undefined;
  const entries = new Map<string, ServerEntry>();
  for (const [index, document] of documents.entries()) {
    if (!isServerDocument(document)) return undefined;
    const { name, version } = document;
    // Of equal entries the last counts, and no name has an "@".
    entries.set(`${name}@${version}`, {
      kind: 'server',
      name,
      version,
      document,
      /** Asked for one entry at most, so looked for only then. */
      get json() {
        return textOf(bytes, format, index);
      },
    });
  }
  return [...entries.values()];
}

/**
 * The value of JSON as programs write it, undefined for any other text and where it is too deep. What is written again as
 * it was read has no member twice.
 */
function parseOrdinary(bytes: Buffer): unknown {
  if (bytes.length > MAX_BYTES || !isUtf8(bytes)) return undefined;
  const text = bytes.toString('utf8').trimEnd();
  if (isDeeperThan(MAX_DEPTH, text)) return undefined;
  const indent = /^[[{]\n( {1,10}|\t)/.exec(text)?.[1] ?? '';
  try {
    // Who judges the rest drops such a member.
    if (text.includes('"__proto__"')) return undefined;
    const value: unknown = JSON.parse(text);
    const written = JSON.stringify(value, null, indent);
    return written === text || (text.includes('\\u0') && escapedForHtml(written) === text)
      ? value
      : undefined;
  } catch {
    return undefined;
  }
}

/** As the official registry writes it. */
function escapedForHtml(json: string): string {
  return json.replaceAll(/[<>&]/g, (one) => `\\u00${one.charCodeAt(0).toString(16)}`);
}

function textOf(bytes: Buffer, format: CatalogueFormat, index: number): string {
  let at = 0;
  for (const candidate of listedEntries(format, openDocument(bytes, 'the catalogue')) ?? []) {
    if (at === index && 'json' in candidate) return candidate.json;
    at += 1;
  }
  return '';
}

/** What `serverDocument` of server-json.ts asks for, said once more without zod; a test holds that it takes no more. */
type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === 'string';
const nullish =
  (check: Check): Check =>
  (value) =>
    value === undefined || value === null || check(value);
const listOf = (check: Check) => nullish((value) => Array.isArray(value) && value.every(check));
const mapOf = (check: Check) => nullish((value) => isRecord(value) && Object.values(value).every(check));

function holding(checks: Readonly<Record<string, Check>>): Check {
  const rows = Object.entries(checks);
  return (value) => {
    if (!isRecord(value)) return false;
    for (const [name, check] of rows) if (!check(value[name])) return false;
    return true;
  };
}

const text = nullish(isText);
const flag = nullish((value) => typeof value === 'boolean');
const inputChecks = {
  description: text,
  format: text,
  isRequired: flag,
  isSecret: flag,
  default: text,
  placeholder: text,
  value: text,
  choices: listOf(isText),
};
const variables = mapOf(holding(inputChecks));
const named = listOf(holding({ ...inputChecks, variables, name: isText }));
const argumentList = listOf(
  holding({ ...inputChecks, variables, type: text, name: text, valueHint: text, isRepeated: flag }),
);
const transportChecks = { type: isText, url: text, headers: named, variables };
const isNonEmpty: Check = (value) => typeof value === 'string' && value !== '';

const isDocument = holding({
  $schema: text,
  name: (value) => typeof value === 'string' && serverNameFault(value) === undefined,
  version: (value) => typeof value === 'string' && versionFault(value) === undefined,
  description: isText,
  title: text,
  websiteUrl: text,
  repository: nullish(holding({ url: text, source: text, id: text, subfolder: text })),
  packages: listOf(
    holding({
      registryType: isText,
      identifier: isNonEmpty,
      version: text,
      registryBaseUrl: text,
      fileSha256: text,
      runtimeHint: text,
      transport: nullish(holding(transportChecks)),
      runtimeArguments: argumentList,
      packageArguments: argumentList,
      environmentVariables: named,
    }),
  ),
  remotes: listOf(holding({ ...transportChecks, url: isNonEmpty })),
  _meta: mapOf(() => true),
});

/** Members that only an older format has, or a skill or plugin, make it something else; see `decodeEntry`. */
export function isServerDocument(value: unknown): value is ServerDocument {
  return isRecord(value) && !('version_detail' in value) && !('namespace' in value) && isDocument(value);
}
