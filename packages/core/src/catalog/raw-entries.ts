import { parseLossless, serializeLossless } from '../json/lossless.ts';
import type { RawEntry } from './decode-entry.ts';
import type { CatalogueFormat } from './detect-format.ts';
import type { EntryKind } from './entry.ts';
import { elementSlices, memberSlice } from './json-slices.ts';
import { convertNative } from './native-format.ts';

/** A candidate, or one that could not even be read that far. `label` names it when it has no name of its own. */
export type Candidate = { readonly label: string } & (RawEntry | { readonly fault: string });

function member(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? Reflect.get(value, key)
    : undefined;
}

/** Pairs each element of the array at `path` with its exact text. */
function* elements(
  value: unknown,
  text: string,
  path: readonly string[],
): Generator<[string, unknown, string]> {
  const list = path.reduce(member, value);
  if (!Array.isArray(list)) return;
  const slices = elementSlices(memberSlice(text, path) ?? '');
  for (const [index, element] of list.entries()) {
    yield [`${path.join('.')}[${index}]`, element, slices[index] ?? ''];
  }
}

function* plain(
  value: unknown,
  text: string,
  path: readonly string[],
  kind: EntryKind,
): Generator<Candidate> {
  for (const [label, element, json] of elements(value, text, path))
    yield { label, kind, value: element, json };
}

/** Elements that are `{server, _meta}` are unwrapped; others are server documents themselves. */
function* wrapped(value: unknown, text: string, path: readonly string[]): Generator<Candidate> {
  for (const [label, element, json] of elements(value, text, path)) {
    const server = member(element, 'server');
    if (typeof server === 'object' && server !== null) {
      const inner = memberSlice(json, ['server']) ?? '';
      yield { label, kind: 'server', value: server, json: inner, outerMeta: member(element, '_meta') };
    } else {
      yield { label, kind: 'server', value: element, json };
    }
  }
}

/** Converted documents are new text, so their numbers have to come from a parse that keeps digits. */
function* native(text: string): Generator<Candidate> {
  const value = parseLossless(text, { maxBytes: Number.MAX_SAFE_INTEGER });
  if (typeof value !== 'object' || value === null) return;
  for (const converted of convertNative(value)) {
    if ('fault' in converted) yield { label: converted.key, fault: converted.fault };
    else {
      const { key, document } = converted;
      const json = serializeLossless(document);
      yield { label: key, kind: 'server', value: JSON.parse(json), json };
    }
  }
}

/** All candidates of a catalogue in file order, each with its exact text. `value` is `text` decoded. */
export function* rawEntries(format: CatalogueFormat, value: unknown, text: string): Generator<Candidate> {
  switch (format) {
    case 'registry-file':
      yield* plain(value, text, ['data', 'servers'], 'server');
      yield* plain(value, text, ['data', 'skills'], 'skill');
      yield* plain(value, text, ['data', 'plugins'], 'plugin');
      break;
    case 'official-list':
      yield* wrapped(value, text, ['servers']);
      break;
    case 'server-array':
      yield* wrapped(value, text, []);
      break;
    case 'toolhive-native':
      yield* native(text);
      break;
    case 'server-json':
      yield { label: 'the document', kind: 'server', value, json: text };
      break;
  }
}
