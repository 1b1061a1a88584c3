import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isAllowedPath } from '../../../sources/allowed-path.ts';
import { KINDS } from '../../../sources/kinds.ts';
import { decodeSource } from '../../../sources/open-source.ts';
import { withoutUrlSecrets } from '../../../sources/url-secrets.ts';
import type { SourceSettings } from '../../../store/rows.ts';
import { badRequest } from '../../route/parameter.ts';
import type { AdminCall } from '../admin-route.ts';

/**
 * Checks everything about settings of a request that needs no store, and that settings of the configuration file are not
 * held to. Fails with `registry/bad-request`.
 */
export async function checkRequested({
  body: settings,
  limits,
  ingest,
}: AdminCall<SourceSettings>): Promise<void> {
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
    await ingest(input, new AbortController().signal).catch((error: unknown) => {
      throw error instanceof SkepError ? invalid(error.message) : error;
    });
  }
}

const KEPT_SECRET =
  'the address has a user, a password or a secret in its query, which the store would keep; a git source takes ' +
  'auth.username and auth.passwordFile, and sources of the configuration file may have such addresses';

function invalid(detail: string): SkepError {
  return badRequest(`invalid source configuration: ${detail}`);
}
