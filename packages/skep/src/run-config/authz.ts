import { extname } from 'node:path';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { readJsonText, readText } from '@skep/core/files/read-limited.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { repeatedMember } from '@skep/core/json/scan.ts';
import type { AuthzSettings } from '@skep/proxy/steps/authorization.ts';
import type { RunConfig } from './run-config.ts';

/** The members of a run configuration that say who may use what. */
export type AuthzConfig = {
  readonly [Key in 'authz_config' | 'authz_config_path']?: RunConfig[Key] | undefined;
};

const LIMITS = { maxBytes: 1024 * 1024, what: 'authorization configuration' };

/**
 * The file of `--authz-config`, JSON or YAML by its name; what it means is the proxy's to check. Fails with
 * `config/invalid` and `file/*`.
 */
export async function readAuthzFile(path: string): Promise<NonNullable<AuthzConfig['authz_config']>> {
  const document = await readDocument(path);
  if (!isRecord(document)) throw invalidFile(path, 'is not a mapping');
  return document;
}

async function readDocument(path: string): Promise<unknown> {
  const kind = extname(path).toLowerCase();
  if (kind === '' || kind === '.json') {
    const { value, text } = await readJsonText(path, LIMITS);
    const twice = repeatedMember(text);
    if (twice !== undefined) throw invalidFile(path, `has "${twice}" twice`);
    return value;
  }
  if (kind !== '.yaml' && kind !== '.yml') throw invalidFile(path, 'is neither a .json nor a .yaml file');
  const text = await readText(path, LIMITS);
  const { parse } = await import('yaml');
  try {
    return parse(text) as unknown;
  } catch (cause) {
    const [why = ''] = cause instanceof Error ? cause.message.split('\n', 1) : [];
    throw invalidFile(path, `is not YAML: ${why.replace(/:$/u, '')}`);
  }
}

function invalidFile(path: string, why: string): SkepError {
  return new SkepError('config/invalid', {
    message: `authorization configuration "${path}" ${why}`,
    hint: 'see docs/behaviour/proxy.md#authorization',
  });
}

/** Who may use what; undefined where everybody may use everything. */
export function authzOf({
  authz_config: document,
  authz_config_path: path,
}: AuthzConfig): AuthzSettings | undefined {
  if (document !== undefined) return { document };
  if (!path) return undefined;
  throw new SkepError('file/not-found', { message: `authorization configuration "${path}" does not exist` });
}

/** As `authzOf`, with what the file says now, where it is still there. Fails as `readAuthzFile`. */
export async function currentAuthz(config: AuthzConfig): Promise<AuthzSettings | undefined> {
  const { authz_config_path: path } = config;
  if (!path) return authzOf(config);
  try {
    return { document: await readAuthzFile(path) };
  } catch (error) {
    if (hasCode(error, 'file/not-found')) return authzOf(config);
    throw error;
  }
}
