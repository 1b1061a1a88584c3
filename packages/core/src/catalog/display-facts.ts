import { isRecord } from '../json/is-record.ts';
import { extensionBlocks, extensionSummary } from './extension-summary.ts';
import type { ServerDocument } from './server-json.ts';
import { tokensOfTool } from './tool-weight.ts';

/** A tool that an entry names, with what its definition takes of a model's context, where the entry has one. */
export interface ListedTool {
  readonly name: string;
  readonly tokens?: number;
}

/** The tools of a server as its entry tells; never throws. */
export function listedTools(document: ServerDocument): readonly ListedTool[] {
  const defined = new Map<string, number>();
  for (const block of Object.values(extensionBlocks(document))) {
    const definitions = isRecord(block) ? block['tool_definitions'] : undefined;
    if (!Array.isArray(definitions)) continue;
    for (const one of definitions) if (isDefinition(one)) defined.set(one.name, tokensOfTool(one));
  }
  const names = new Set([...extensionSummary(document).tools, ...defined.keys()]);
  return [...names].map((name) => {
    const tokens = defined.get(name);
    return tokens === undefined ? { name } : { name, tokens };
  });
}

function isDefinition(
  value: unknown,
): value is { readonly name: string } & Readonly<Record<string, unknown>> {
  return isRecord(value) && typeof value['name'] === 'string';
}

/** The licence as the document or its publisher names it; the standard has no place for it. */
export function licenceOf(document: ServerDocument): string | undefined {
  for (const block of [document, ...Object.values(extensionBlocks(document))]) {
    if (!isRecord(block)) continue;
    const custom = isRecord(block['custom_metadata']) ? block['custom_metadata'] : {};
    const named = [block['license'], custom['license']].find((one) => typeof one === 'string' && one !== '');
    if (typeof named === 'string') return named;
  }
  return undefined;
}
