import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { members, optional, readAs, recordOf, text } from '@skep/core/settings/shape.ts';

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

const dockerConfigShape = members({
  auths: optional(recordOf(members({ auth: optional(text), identitytoken: optional(text) }))),
  credsStore: optional(text),
  credHelpers: optional(recordOf(text)),
});

function fromDockerConfig(host: string, file: string): RegistryLogin {
  const config = readAs(dockerConfigShape, parsedJson(file));
  if (config === undefined) return { note: 'the docker config file is not valid, pulling without a login' };
  const names =
    host === 'docker.io'
      ? ['https://index.docker.io/v1/', 'docker.io', 'index.docker.io']
      : [host, `https://${host}`];
  const entry = names.map((name) => config.auths?.[name]).find((one) => one !== undefined);
  if (entry?.identitytoken)
    return { header: encode({ identitytoken: entry.identitytoken, serveraddress: host }) };
  const [username = '', ...rest] = Buffer.from(entry?.auth ?? '', 'base64')
    .toString('utf8')
    .split(':');
  if (username !== '') return { header: encode({ username, password: rest.join(':'), serveraddress: host }) };
  const helper = config.credHelpers?.[host] ?? config.credsStore;
  return helper === undefined
    ? {}
    : { note: `the login for ${host} lies in the credential helper "${helper}", which Skep does not run` };
}

const encode = (login: object) => Buffer.from(JSON.stringify(login)).toString('base64url');
