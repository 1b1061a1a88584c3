import { decodeEntry, type EntryKind } from '@skep/core/catalog/entry.ts';
import { officialFaults } from '@skep/core/catalog/official-schema.ts';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { readText } from '@skep/core/files/read-limited.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { jsonErrorPlace } from '@skep/core/json/judge.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { compactText, memberSlice } from '@skep/core/json/scan.ts';
import { printable } from '@skep/core/terminal/printable.ts';

/** What somebody wants to publish, as its file has it. */
export interface Publication {
  readonly kind: EntryKind;
  readonly name: string;
  readonly version: string;
  /** JSON, byte for byte as its publisher wrote it. */
  readonly text: string;
  /** What the official schema finds wrong with it; a registry may take it nevertheless. */
  readonly faults: readonly string[];
}

const MAX_BYTES = 1024 * 1024;
const BUNDLES = ['skill', 'plugin'] as const;

/**
 * Reads a server document, or a file that holds a skill or plugin under that name. Fails with `file/*`, and with
 * `publish/invalid-document` for what is no document at all.
 */
export async function readPublication(path: string, shown: string): Promise<Publication> {
  const text = await readText(path, { maxBytes: MAX_BYTES, what: 'server document' }).catch(hinted);
  const value = parsedJson(text);
  if (!isRecord(value)) throw new SkepError('publish/invalid-document', { message: notJson(text, shown) });
  const kind = BUNDLES.find((one) => isRecord(value[one]));
  const document = kind === undefined ? value : value[kind];
  const beside =
    kind === undefined ? undefined : Object.keys(value).find((member) => ![kind, '$schema'].includes(member));
  if (beside !== undefined) {
    throw new SkepError('publish/invalid-document', {
      message: `"${shown}" has ${JSON.stringify(printable(beside))} beside its ${String(kind)}, which would not be published`,
      hint: beside === 'claims' ? 'give claims with --claim' : 'take it out',
    });
  }
  const own = kind === undefined ? text.trim() : (memberSlice(text, [kind]) ?? '');
  const { name, version, namespace } = isRecord(document) ? document : {};
  if (typeof name !== 'string' || typeof version !== 'string') {
    throw new SkepError('publish/invalid-document', { message: `"${shown}" has no name or no version` });
  }
  return {
    kind: kind ?? 'server',
    name: typeof namespace === 'string' ? `${namespace}/${name}` : name,
    version,
    text: own,
    faults: kind === undefined ? serverFaults(document, own) : bundleFaults(kind, document, own),
  };
}

function hinted(error: unknown): never {
  if (!hasCode(error, 'file/not-found')) throw error;
  throw new SkepError(error.code, {
    message: error.message,
    hint: 'skep publish --init writes one from package.json, pyproject.toml, go.mod or an image',
    cause: error,
  });
}

function notJson(text: string, shown: string): string {
  const place = jsonErrorPlace(text);
  return place === undefined
    ? `"${shown}" is no JSON object`
    : `"${shown}" is not valid JSON at line ${place.line}, column ${place.column}`;
}

/** Beside the schema what every reader refuses: a member that is there twice. */
function serverFaults(document: unknown, text: string): readonly string[] {
  const faults = officialFaults(document);
  return faults.length > 0 ? faults : bundleFaults('server', document, text);
}

function bundleFaults(kind: EntryKind, value: unknown, text: string): readonly string[] {
  const decoded = decodeEntry({ kind, value, ...compactText(text) });
  return 'fault' in decoded ? [decoded.fault] : [];
}
