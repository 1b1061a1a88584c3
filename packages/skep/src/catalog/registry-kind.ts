import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isRecord } from '@skep/core/json/is-record.ts';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { redactUrl } from '@skep/core/log/redact.ts';
import { statusOf, type Client } from '@skep/core/fetch/client.ts';
import { parseHttpUrl } from '../settings/http-url.ts';
import { localFile, remoteFile } from './open-catalog.ts';

/** A catalogue choice as keys of the configuration file: one is set, the others go. */
export interface RegistryChoice {
  readonly registry_api_url: string | undefined;
  readonly registry_url: string | undefined;
  readonly local_registry_path: string | undefined;
}

export const noRegistry: RegistryChoice = {
  registry_api_url: undefined,
  registry_url: undefined,
  local_registry_path: undefined,
};

export interface KindOptions {
  readonly cwd: string;
  readonly allowPrivate: boolean;
  readonly client: () => Promise<Client>;
  readonly signal: AbortSignal;
}

/**
 * What kind of catalogue a text names, proved by reading it (docs/behaviour/run.md#catalogues): `file://` or a path is
 * a file; an address ending in `.json` is a remote file; any other address is asked whether it speaks the registry API.
 */
export async function detectRegistry(text: string, options: KindOptions): Promise<RegistryChoice> {
  const { cwd, signal } = options;
  const url = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? URL.parse(text) : undefined;
  if (url === null || (url !== undefined && url.protocol !== 'file:' && !parseHttpUrl(text))) {
    throw new SkepError('usage/invalid-value', {
      message: `invalid address "${redactUrl(text)}"`,
      hint: 'give a file, or an http or https address with a host',
    });
  }
  if (url === undefined || url.protocol === 'file:') {
    const path = url === undefined ? resolve(cwd, text) : fileURLToPath(url);
    await localFile(path).list({ signal });
    return { ...noRegistry, local_registry_path: path };
  }
  if (url.protocol === 'http:' && !options.allowPrivate) {
    throw new SkepError('catalog-source/refused', {
      message: `plain http is not safe for a catalogue: "${redactUrl(text)}"`,
    });
  }
  if (!url.pathname.endsWith('.json') && (await speaksApi(text, options)))
    return { ...noRegistry, registry_api_url: text };
  await remoteFile(text, await options.client()).list({ signal });
  return { ...noRegistry, registry_url: text };
}

async function speaksApi(base: string, { client, signal }: KindOptions): Promise<boolean> {
  const connection = await client();
  try {
    const url = `${base.replace(/\/+$/, '')}/v0.1/servers?limit=1&version=latest`;
    const answer = await connection.getJson(url, { signal });
    return isRecord(answer) && Array.isArray(answer['servers']) && 'metadata' in answer;
  } catch (error) {
    const status = statusOf(error);
    if (status === 401 || status === 403) return true;
    if (status !== undefined || hasCode(error, 'fetch/not-json')) return false;
    throw error;
  } finally {
    await connection.close();
  }
}
