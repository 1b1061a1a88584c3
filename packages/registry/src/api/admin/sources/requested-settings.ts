import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isAllowedPath } from '../../../sources/allowed-path.ts';
import { KINDS } from '../../../sources/kinds.ts';
import { decodeSource } from '../../../sources/open-source.ts';
import { parseSourceBody } from '../../../sources/source-body.ts';
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
  const { apiFault, files = [], data, format } = decodeSource(settings);
  if (KINDS[settings.kind].isAvailable === false)
    throw invalid(`a ${settings.kind} source is not available yet`);
  if (apiFault !== undefined) throw invalid(apiFault);
  if (withoutUrlSecrets(settings.config) !== settings.config) throw invalid(KEPT_SECRET);
  for (const path of files) {
    if (!isAllowedPath(path, limits.allowedPaths)) {
      throw invalid(`${JSON.stringify(path)} is in none of the folders of limits.allowedPaths`);
    }
  }
  if (data !== undefined) {
    const input = { bytes: Buffer.from(data), label: 'file.data', limits, format };
    await described(() => ingest(input, new AbortController().signal));
  }
  return settings;
}

const KEPT_SECRET =
  'the address has a user, a password or a secret in its query, which the store would keep; a git source takes ' +
  'auth.username and auth.passwordFile, and sources of the configuration file may have such addresses';

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
