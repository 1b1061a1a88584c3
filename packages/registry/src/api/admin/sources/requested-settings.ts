import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { SourceFormat } from '../../../config/config.ts';
import { parseSourceBody } from '../../../config/source-settings.ts';
import { KEY_NEEDED, needsKey } from '../../../sources/git/ssh-key.ts';
import { withoutUrlSecrets } from '../../../sources/url-secrets.ts';
import type { SourceSettings } from '../../../store/rows.ts';
import { badRequest } from '../../route/parameter.ts';
import type { AdminCall } from '../admin-route.ts';
import { readJsonBody } from '../json-body.ts';

/** A request's body as settings, everything about it checked that needs no store. Fails with `registry/bad-request`. */
export async function requestedSettings({
  body,
  limits,
  ingest,
}: Pick<AdminCall, 'body' | 'limits' | 'ingest'>): Promise<SourceSettings> {
  const { value } = readJsonBody(body);
  const settings = await described(() => parseSourceBody(value, limits.claims));
  if (settings.kind === 'kubernetes') throw invalid('a kubernetes source is not available yet');
  requireOwnKey(settings);
  if (withoutUrlSecrets(settings.config) !== settings.config) throw invalid(KEPT_SECRET);
  for (const path of filesOf(settings)) {
    if (!limits.allowsPath(path)) {
      throw invalid(`${JSON.stringify(path)} is in none of the folders of limits.allowedPaths`);
    }
  }
  const data = blockOf(settings)['data'];
  if (typeof data === 'string') {
    const input = {
      bytes: Buffer.from(data),
      label: 'file.data',
      maxInvalidShare: limits.maxInvalidShare,
      documents: limits.documents,
      maxBytes: limits.maxCatalogueBytes,
      ...formatOf(settings),
    };
    await described(() => ingest(input, new AbortController().signal));
  }
  return settings;
}

const KEPT_SECRET =
  'the address has a user, a password or a secret in its query, which the store would keep; a git source takes ' +
  'auth.username and auth.passwordFile, and sources of the configuration file may have such addresses';

function requireOwnKey(settings: SourceSettings): void {
  const { repository, auth } = blockOf(settings);
  if (typeof repository !== 'string') return;
  if (needsKey(repository, isObject(auth) ? auth : undefined)) throw invalid(KEY_NEEDED);
}

/** What tells file sources apart that cannot be turned into each other (specification §2.6.1). */
export function fileForm(settings: SourceSettings): 'path' | 'url' | 'data' | undefined {
  if (settings.kind !== 'file') return undefined;
  const block = blockOf(settings);
  return (['path', 'url', 'data'] as const).find((key) => key in block);
}

/** Files of this machine that the source would read. */
function filesOf(settings: SourceSettings): string[] {
  const block = blockOf(settings);
  const { auth } = block;
  const [password, key]: unknown[] = isObject(auth) ? [auth['passwordFile'], auth['sshKeyFile']] : [];
  return [settings.kind === 'file' ? block['path'] : undefined, password, key].filter(
    (path): path is string => typeof path === 'string',
  );
}

function blockOf({ config }: SourceSettings): Record<string, unknown> {
  const block: unknown = JSON.parse(config);
  return isObject(block) ? block : {};
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function formatOf({ format }: SourceSettings): { readonly format?: SourceFormat } {
  return format === 'toolhive' || format === 'upstream' ? { format } : {};
}

async function described<T>(read: () => T | Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof SkepError) throw invalid(error.message);
    throw error;
  }
}

function invalid(detail: string): SkepError {
  return badRequest(`invalid source configuration: ${detail}`);
}
