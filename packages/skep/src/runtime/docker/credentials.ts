import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { z } from 'zod';

/** What decides about registry logins. */
export interface CredentialSources {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Text of the docker config file; absent when there is none. */
  readonly dockerConfig?: string;
}

export interface RegistryLogin {
  /** Value of the `X-Registry-Auth` header; absent means anonymous. */
  readonly header?: string;
  /** Said to the person who waits, when a login is configured in a way Skep cannot use. */
  readonly note?: string;
}

/**
 * Finds the login for one registry host (docs/behaviour/run.md#registry-logins): `REGISTRY_<HOST>_USERNAME/_PASSWORD`,
 * then `REGISTRY_USERNAME/_PASSWORD`, then `auths` of the docker config. Credential helpers are programs and are not
 * run.
 */
export function registryLogin(host: string, sources: CredentialSources): RegistryLogin {
  const upper = host.toUpperCase().replaceAll(/[.:-]/g, '_');
  for (const prefix of [`REGISTRY_${upper}`, 'REGISTRY']) {
    const username = sources.env[`${prefix}_USERNAME`];
    const password = sources.env[`${prefix}_PASSWORD`];
    if (username && password) return { header: encode({ username, password, serveraddress: host }) };
  }
  return sources.dockerConfig === undefined ? {} : fromDockerConfig(host, sources.dockerConfig);
}

const dockerConfigShape = z.object({
  auths: z
    .record(z.string(), z.object({ auth: z.string().optional(), identitytoken: z.string().optional() }))
    .optional(),
  credsStore: z.string().optional(),
  credHelpers: z.record(z.string(), z.string()).optional(),
});

function fromDockerConfig(host: string, text: string): RegistryLogin {
  const parsed = dockerConfigShape.safeParse(parsedJson(text));
  if (!parsed.success) return { note: 'the docker config file is not valid, pulling without a login' };
  const names =
    host === 'docker.io'
      ? ['https://index.docker.io/v1/', 'docker.io', 'index.docker.io']
      : [host, `https://${host}`];
  const entry = names.map((name) => parsed.data.auths?.[name]).find((one) => one !== undefined);
  if (entry?.identitytoken)
    return { header: encode({ identitytoken: entry.identitytoken, serveraddress: host }) };
  const [username = '', ...rest] = Buffer.from(entry?.auth ?? '', 'base64')
    .toString('utf8')
    .split(':');
  if (username !== '') return { header: encode({ username, password: rest.join(':'), serveraddress: host }) };
  const helper = parsed.data.credHelpers?.[host] ?? parsed.data.credsStore;
  return helper === undefined
    ? {}
    : { note: `the login for ${host} lies in the credential helper "${helper}", which Skep does not run` };
}

const encode = (login: object) => Buffer.from(JSON.stringify(login)).toString('base64url');
