import { isSecretName } from '@skep/core/log/redact.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import type { AppConfig } from '../config/app-config.ts';
import {
  LOGIN_FILES,
  type BuildAccess,
  type BuildSecrets,
  type LoginFile,
} from '../runtime/build-secrets.ts';
import { parseNetrc } from '../runtime/gateway/netrc.ts';
import { forAllManagers } from '../runtime/with-build-secrets.ts';
import { buildAuthSecret } from '../secrets/reference.ts';
import type { Surroundings } from './plan.ts';

type BuildKeys = Pick<AppConfig, 'buildEnv' | 'buildEnvFromSecrets' | 'buildEnvFromShell' | 'buildAuthFiles'>;

type GivenVariables = {
  readonly [Key in Exclude<keyof BuildKeys, 'buildAuthFiles'>]: NonNullable<BuildKeys[Key]>;
};

/**
 * What the configuration file gives to whatever fetches packages (docs/behaviour/run.md#private-registries); undefined
 * where it says nothing. Secrets are read when they are needed. Fails with `config/invalid`.
 */
export function buildAccess(app: BuildKeys, around: Surroundings): BuildAccess | undefined {
  const { buildEnv = {}, buildEnvFromSecrets = {}, buildEnvFromShell = [], buildAuthFiles = {} } = app;
  const files = Object.keys(buildAuthFiles).map(checkLoginFile);
  for (const [name, value] of Object.entries(buildEnv)) checkBuildVariable(name, value);
  for (const name of [...Object.keys(buildEnvFromSecrets), ...buildEnvFromShell]) checkBuildVariable(name);
  const named = [buildEnvFromSecrets, buildEnvFromShell, files];
  if ([buildEnv, ...named].every((one) => Object.keys(one).length === 0)) return undefined;
  return {
    identity: JSON.stringify([buildEnv, ...named]),
    reveal: () => reveal({ buildEnv, buildEnvFromSecrets, buildEnvFromShell }, files, around),
  };
}

/** True where the configuration file says anything of the kind. */
export function hasBuildAccess(app: BuildKeys): boolean {
  const all = [app.buildEnv, app.buildEnvFromSecrets, app.buildEnvFromShell, app.buildAuthFiles];
  return all.some((one) => one !== undefined && Object.keys(one).length > 0);
}

async function reveal(
  { buildEnv, buildEnvFromSecrets, buildEnvFromShell }: GivenVariables,
  kinds: readonly LoginFile[],
  around: Surroundings,
): Promise<BuildSecrets> {
  const shell = new Map<string, string>();
  for (const name of buildEnvFromShell) {
    const value = around.env[name];
    if (value === undefined)
      around.terminal.err(`Warning: ${name}, which builds take from the environment, is not set\n`);
    else shell.set(name, checkBuildVariable(name, value));
  }
  const wanted = Object.entries(buildEnvFromSecrets);
  const find = wanted.length + kinds.length === 0 ? undefined : await secretFinder(around);
  const secrets = new Map<string, string>();
  for (const [name, secret] of wanted) {
    const value = await find?.(secret);
    if (value === undefined)
      throw missing(
        `secret "${printable(secret)}", which builds take as ${name},`,
        `skep secret set ${printable(secret)}`,
      );
    secrets.set(name, checkBuildVariable(name, value));
  }
  const files: Partial<Record<LoginFile, string>> = {};
  for (const kind of kinds) {
    const content = await find?.(buildAuthSecret(kind));
    if (content === undefined)
      throw missing(`the ${kind} of builds`, `skep config set-build-auth-file ${kind}`);
    files[kind] = content;
  }
  const env = forAllManagers({ ...buildEnv, ...Object.fromEntries([...secrets, ...shell]) });
  return { env, files, hidden: hiddenOf(env, secrets, files) };
}

async function secretFinder(around: Surroundings): Promise<(name: string) => Promise<string | undefined>> {
  const { findSecret, openProvider } = await import('../secrets/open-provider.ts');
  const provider = await openProvider(around);
  return (name) => findSecret(provider, name, around);
}

function missing(what: string, command: string): SkepError {
  return new SkepError('secrets/not-found', {
    message: `${what} is not in the secrets store`,
    hint: `store it with ${command}`,
  });
}

/** Shorter ones are in every file. */
const MIN_HIDDEN = 4;

function hiddenOf(
  env: BuildSecrets['env'],
  secrets: ReadonlyMap<string, string>,
  files: BuildSecrets['files'],
): readonly string[] {
  const ofVariables = Object.entries(env).flatMap(([name, value]) => {
    const url = URL.parse(value.replace(/^[\w.-]+=(?=https?:)/, ''));
    // An address is known to whoever reads what was fetched from it.
    if (url?.protocol === 'https:' || url?.protocol === 'http:') {
      const login = url.password === '' ? url.username : url.password;
      return [login, decodeURIComponent(login)];
    }
    return secrets.has(name) || isSecretName(name) ? [value] : [];
  });
  const all = new Set([...ofVariables, ...loginSecrets(files)]);
  return [...all].filter((one) => one.length >= MIN_HIDDEN);
}

/** What of login files signs in: tokens and passwords. */
function loginSecrets({ npmrc = '', netrc = '' }: BuildSecrets['files']): readonly string[] {
  const tokens = [...npmrc.matchAll(/(?:_authToken|_auth|_password)\s*=\s*"?([^"\s]+)/g)].map(
    ([, one]) => one,
  );
  const passwords = [...parseNetrc(netrc).values()].map(([, password]) => password);
  return [...tokens, ...passwords].filter((one): one is string => one !== undefined && one !== '');
}

const NAME = /^[A-Z][A-Z0-9_]*$/;
/** They decide what runs in a build, not where packages come from. */
const RESERVED = new Set([
  'PATH',
  'HOME',
  'USER',
  'SHELL',
  'PWD',
  'HOSTNAME',
  'TERM',
  'LANG',
  'LC_ALL',
  'IFS',
  'ENV',
]);

/** The value of a variable of builds, or just its name. Fails with `config/invalid`. */
export function checkBuildVariable(name: string, value = ''): string {
  const shown = JSON.stringify(printable(name).slice(0, 100));
  if (!NAME.test(name) || name.length > 200)
    throw invalid(`${shown} is no name of a variable of builds`, 'write it in capitals, digits and _');
  if (RESERVED.has(name) || name.startsWith('LD_'))
    throw invalid(`builds set ${shown} themselves`, 'choose another variable');
  if (/[\0\r\n]/.test(value) || value.length > 32_768)
    throw invalid(
      `the value of ${shown} has a line break or is too long`,
      'give one line; a login file is stored with skep config set-build-auth-file',
    );
  return value;
}

/** Fails with `config/invalid`. */
export function checkLoginFile(kind: string): LoginFile {
  const known = LOGIN_FILES.find((one) => one === kind);
  if (known !== undefined) return known;
  throw invalid(
    `${JSON.stringify(printable(kind).slice(0, 100))} is no login file that a build can use`,
    `use ${LOGIN_FILES.join(' or ')}: npx:// packages are installed by npm, uvx:// and go:// ones sign in by netrc`,
  );
}

const invalid = (message: string, hint: string): SkepError =>
  new SkepError('config/invalid', { message, hint });
