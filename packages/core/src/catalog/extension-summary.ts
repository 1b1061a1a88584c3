import type { ServerDocument } from './server-json.ts';
import { isRecord } from '../json/is-record.ts';

/** Key of the publisher's own block in a document's `_meta`. */
export const PUBLISHER_META = 'io.modelcontextprotocol.registry/publisher-provided';

/**
 * The publisher's extension block: `_meta[publisher-provided]["io.github.stacklok"][<image, package or URL>]`. The key is
 * an interchange format that other catalogues write, so it is read and written unchanged.
 */
export const EXTENSION_NAMESPACE = 'io.github.stacklok';

type Members = Readonly<Record<string, unknown>>;

function record(value: unknown): Members {
  return isRecord(value) ? value : {};
}

/** By package or remote. */
export function extensionBlocks(document: ServerDocument): Members {
  return record(record(document._meta?.[PUBLISHER_META])[EXTENSION_NAMESPACE]);
}

/** What all extension blocks of a document say for people; never throws. */
export interface ExtensionSummary {
  /** See extensionStatus. */
  readonly status: ExtensionStatus | undefined;
  readonly tier: string | undefined;
  readonly tags: readonly string[];
  readonly tools: readonly string[];
}

/** Lower case. */
export type ExtensionStatus = 'active' | 'deprecated';

/** One of a wrong type reads as absent. */
function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string') ? value : [];
}

/** Reads tags, tools, tier and status for listing and searching, over all packages and remotes. */
export function extensionSummary(document: ServerDocument): ExtensionSummary {
  const tags = new Set<string>();
  const tools = new Set<string>();
  let tier: string | undefined;
  for (const block of Object.values(extensionBlocks(document))) {
    const shown = record(block);
    for (const tag of textsOf(shown['tags'])) tags.add(tag);
    for (const tool of textsOf(shown['tools'])) tools.add(tool);
    if (typeof shown['tier'] === 'string') tier ??= shown['tier'];
  }
  return { status: extensionStatus(document), tier, tags: [...tags], tools: [...tools] };
}

/**
 * The status that the first block with a known one gives, undefined when none does. Never throws. Asked for every entry of a
 * catalogue, so nothing else is looked at.
 */
export function extensionStatus(document: ServerDocument): ExtensionStatus | undefined {
  for (const block of Object.values(extensionBlocks(document))) {
    const { status } = record(block);
    const lower = typeof status === 'string' ? status.toLowerCase() : undefined;
    if (lower === 'active' || lower === 'deprecated') return lower;
  }
  return undefined;
}
