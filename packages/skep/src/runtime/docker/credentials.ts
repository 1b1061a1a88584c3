import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { members, optional, readAs, recordOf, text } from '@skep/core/settings/shape.ts';

/** What decides about registry logins. */
export interface CredentialSources {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Text of the docker config file; absent when there is none. */
  readonly dockerConfig?: string;
}

/** What a registry is shown: a name with a password, or a token that stands for both. */
export type Login =
  | { readonly username: string; readonly password: string }
  | { readonly identitytoken: string };

export interface FoundLogin {
  /** Absent means anonymous. */
  readonly login?: Login;
  /** Said to the person who waits, when a login is configured in a way Skep cannot use. */
  readonly note?: string;
}

/** A helper asks a keychain, which may ask the person. */
const HELPER_MS = 30_000;
/** It becomes part of the name of a program. */
const HELPER = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
/** What helpers answer as a name when the secret is a token. */
const TOKEN = '<token>';

/**
 * Finds the login for one registry host (docs/behaviour/run.md#registry-logins): `REGISTRY_<HOST>_USERNAME/_PASSWORD`,
 * then `REGISTRY_USERNAME/_PASSWORD`, then the docker config: the credential helper that it names for the host
 * (`credHelpers`), or for all (`credsStore`), then `auths`.
 */
export async function findLogin(host: string, sources: CredentialSources): Promise<FoundLogin> {
  const upper = host.toUpperCase().replaceAll(/[.:-]/g, '_');
  for (const prefix of [`REGISTRY_${upper}`, 'REGISTRY']) {
    const username = sources.env[`${prefix}_USERNAME`];
    const password = sources.env[`${prefix}_PASSWORD`];
    if (username && password) return { login: { username, password } };
  }
  return sources.dockerConfig === undefined
    ? {}
    : await fromDockerConfig(host, sources.dockerConfig, sources.env);
}

/** Value of the header `X-Registry-Auth`, with which an engine pulls. */
export function registryAuth(host: string, login: Login): string {
  return Buffer.from(JSON.stringify({ ...login, serveraddress: host })).toString('base64url');
}

const dockerConfigShape = members({
  auths: optional(recordOf(members({ auth: optional(text), identitytoken: optional(text) }))),
  credsStore: optional(text),
  credHelpers: optional(recordOf(text)),
});

/** What the docker config calls a host. */
function namesOf(host: string): readonly [string, ...string[]] {
  return host === 'docker.io'
    ? ['https://index.docker.io/v1/', 'docker.io', 'index.docker.io']
    : [host, `https://${host}`];
}

async function fromDockerConfig(
  host: string,
  file: string,
  env: CredentialSources['env'],
): Promise<FoundLogin> {
  const config = readAs(dockerConfigShape, parsedJson(file));
  if (config === undefined) return { note: 'the docker config file is not valid, pulling without a login' };
  const { auths, credHelpers, credsStore } = config;
  const names = namesOf(host);
  const helper = names.map((name) => credHelpers?.[name]).find((one) => one !== undefined) ?? credsStore;
  const helped = helper === undefined ? {} : await fromHelper(helper, names[0], env);
  if (helped.login !== undefined) return helped;
  const entry = names.map((name) => auths?.[name]).find((one) => one !== undefined);
  if (entry?.identitytoken) return { login: { identitytoken: entry.identitytoken } };
  const [username = '', ...rest] = Buffer.from(entry?.auth ?? '', 'base64')
    .toString('utf8')
    .split(':');
  return username === '' ? helped : { login: { username, password: rest.join(':') } };
}

/** Asks `docker-credential-NAME get`, as docker does: the host by its input, the login by its output. */
async function fromHelper(name: string, host: string, env: CredentialSources['env']): Promise<FoundLogin> {
  const program = `docker-credential-${name}`;
  const without = (why: string): FoundLogin => ({ note: `${program} ${why}, pulling without a login` });
  if (!HELPER.test(name)) return without('is no name of a program');
  const { runTool } = await import('../../secrets/run-tool.ts');
  const answer = await runTool(program, ['get'], { env, input: `${host}\n`, waitMs: HELPER_MS });
  if (answer === undefined) return without('was not found');
  // What it says of a failure goes to its standard output, and "not found" is none.
  if (answer.status !== 0) return /not found/i.test(answer.out) ? {} : without('failed');
  const said = parsedJson(answer.out);
  const [username, secret] = isRecord(said) ? [said['Username'], said['Secret']] : [];
  if (typeof username !== 'string' || typeof secret !== 'string') return without('answered something else');
  return { login: username === TOKEN ? { identitytoken: secret } : { username, password: secret } };
}
