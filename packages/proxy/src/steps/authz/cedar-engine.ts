import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type * as Cedar from '@cedar-policy/cedar-wasm/web';

export type CedarEngine = Pick<
  typeof Cedar,
  | 'checkParseEntities'
  | 'isAuthorized'
  | 'policyToJson'
  | 'policyToText'
  | 'preparsePolicySet'
  | 'statefulIsAuthorized'
>;
export type {
  AuthorizationCall,
  CedarValueJson,
  Clause,
  EntityJson,
  Expr,
  PolicyJson,
  Response,
  TypeAndId,
} from '@cedar-policy/cedar-wasm/web';

let loading: Promise<CedarEngine> | undefined;

/** Cedar, of which there is one for the process; loaded with the first workload that has policies. */
export function loadCedar(): Promise<CedarEngine> {
  return (loading ??= load().catch((error: unknown) => {
    loading = undefined;
    throw error;
  }));
}

async function load(): Promise<CedarEngine> {
  const cedar = await import('@cedar-policy/cedar-wasm/web');
  const file = moduleFile();
  const module = await readFile(file).catch((cause: unknown) => {
    throw new SkepError('file/unreadable', { message: `cannot read ${path.basename(file)} of Skep`, cause });
  });
  cedar.initSync({ module });
  return cedar;
}

/** Beside the program (scripts/bundle.ts), or in its package where Skep runs from its sources. */
function moduleFile(): string {
  if (!import.meta.filename.endsWith('.ts')) return path.resolve(import.meta.dirname, '../cedar.wasm');
  const script = fileURLToPath(import.meta.resolve('@cedar-policy/cedar-wasm/web'));
  return path.join(path.dirname(script), 'cedar_wasm_bg.wasm');
}
