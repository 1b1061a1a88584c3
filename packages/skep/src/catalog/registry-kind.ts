import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isRecord } from '@skep/core/json/is-record.ts';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { redactUrl } from '@skep/core/log/redact.ts';
import { statusOf, type Client } from '@skep/core/fetch/client.ts';
import { namesIn } from '../account/account.ts';
import {
  loginInAddress,
  refuseClear,
  registryUrl,
  shownServer,
  splitAddress,
} from '../account/registry-address.ts';
import { hasLogin, parseHttpUrl } from '@skep/core/fetch/http-url.ts';
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
  /** Asks for a file, or a registry, which may want to know who asks. */
  readonly client: (what: 'file' | 'registry') => Promise<Client>;
  readonly signal: AbortSignal;
}

/** What a text names, and whether it has to be known who asks there. */
export interface DetectedRegistry {
  readonly choice: RegistryChoice;
  readonly wantsSignIn: boolean;
}

/**
 * What kind of catalogue a text names, proved by reading it (docs/behaviour/run.md#catalogues): `file://` or a path is
 * a file; an address ending in `.json` is a remote file; any other address is asked whether it speaks the registry API, and
 * else which registries it has. Fails with `usage/missing-argument` where there are several, with `registry/not-found` where
 * the named one is none of them, and as reading it does.
 */
export async function detectRegistry(text: string, options: KindOptions): Promise<DetectedRegistry> {
  const { cwd, signal } = options;
  const url = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? URL.parse(text) : undefined;
  if (url === null || (url !== undefined && url.protocol !== 'file:' && !parseHttpUrl(text))) {
    throw new SkepError('usage/invalid-value', {
      message: `invalid address "${redactUrl(text)}"`,
      hint: 'give a file, or an http or https address with a host',
    });
  }
  if (url !== undefined && hasLogin(url)) throw loginInAddress(text);
  if (url === undefined || url.protocol === 'file:') {
    const path = url === undefined ? resolve(cwd, text) : fileURLToPath(url);
    await localFile(path).list({ signal });
    return { choice: { ...noRegistry, local_registry_path: path }, wantsSignIn: false };
  }
  refuseClear(url, 'a catalogue', options.allowPrivate);
  const api = url.pathname.endsWith('.json') ? undefined : await apiAt(text, url, options);
  if (api !== undefined) return api;
  await remoteFile(text, await options.client('file')).list({ signal });
  return { choice: { ...noRegistry, registry_url: text }, wantsSignIn: false };
}

async function apiAt(text: string, url: URL, options: KindOptions): Promise<DetectedRegistry | undefined> {
  const spoken = await speaksApi(text, options);
  if (spoken !== 'no') {
    const wantsSignIn = spoken === 'to those it knows';
    return { choice: { ...noRegistry, registry_api_url: text }, wantsSignIn };
  }
  const { server, name } = splitAddress(url);
  const names = await registriesAt(server, options);
  if (names === undefined) return undefined;
  const [only, ...others] = names;
  if (name === undefined && only !== undefined && others.length === 0)
    return { choice: { ...noRegistry, registry_api_url: registryUrl(server, only) }, wantsSignIn: false };
  const there = names.length === 0 ? 'you may see none there' : `there are: ${names.join(', ')}`;
  if (name !== undefined) {
    const message = `${shownServer(server)} has no registry "${name}"`;
    throw new SkepError('registry/not-found', { message, hint: there });
  }
  throw new SkepError('usage/missing-argument', {
    message: `${shownServer(server)} has several registries; ${there}`,
    hint: `name one: skep config set-registry ${registryUrl(server, only ?? 'NAME')}`,
  });
}

const MEANS_SIGN_IN = ['auth/not-signed-in', 'auth/sign-in-ended'] as const;

type Spoken = 'to everyone' | 'to those it knows' | 'no';

async function speaksApi(base: string, { client, signal }: KindOptions): Promise<Spoken> {
  const connection = await client('registry');
  try {
    const url = `${base.replace(/\/+$/, '')}/v0.1/servers?limit=1&version=latest`;
    const answer = await connection.getJson(url, { signal });
    const isList = isRecord(answer) && Array.isArray(answer['servers']) && 'metadata' in answer;
    return isList ? 'to everyone' : 'no';
  } catch (error) {
    const status = statusOf(error);
    if (status === 401 || status === 403 || MEANS_SIGN_IN.some((code) => hasCode(error, code)))
      return 'to those it knows';
    if (status !== undefined || hasCode(error, 'fetch/not-json')) return 'no';
    throw error;
  } finally {
    await connection.close();
  }
}

/** The registries of a server as Skep's tells them; undefined for any other. */
async function registriesAt(
  server: string,
  { client, signal }: KindOptions,
): Promise<readonly string[] | undefined> {
  const connection = await client('registry');
  try {
    return namesIn(await connection.getJson(`${server}/v1/registries`, { signal }));
  } catch (error) {
    if (statusOf(error) !== undefined || hasCode(error, 'fetch/not-json')) return undefined;
    throw error;
  } finally {
    await connection.close();
  }
}
