import type { Requirement } from '@skep/core/catalog/run-plan/requirement.ts';
import { VARIABLE_NAME } from '@skep/core/catalog/variable-name.ts';
import type { Settings } from '@skep/core/settings/field.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';

/** Asks the person for one value. */
export type AskValue = (requirement: Requirement) => Promise<string>;

export interface EnvInputs {
  /** What the catalogue says about variables. Their defaults are among the settings. */
  readonly requirements: readonly Requirement[];
  /** How to give the value of a variable, where it is not the flag. */
  readonly give?: (name: string, secret?: boolean) => string;
}

export interface MergedEnv {
  readonly env: Readonly<Record<string, string>>;
  /** Names whose values are secrets, by what the catalogue says. */
  readonly secret: readonly string[];
}

/**
 * The server's variables (docs/behaviour/run.md#variables): what the settings say, each by the strongest that names it,
 * then questions. Fails with `run/missing-env` naming everything that is required and missing, and with
 * `run/invalid-env` for a value that is none of the choices.
 */
export async function mergeEnv(
  settings: Settings,
  { requirements, give }: EnvInputs,
  ask: AskValue | undefined,
): Promise<MergedEnv> {
  const { over = [], value = {} } = settings.get('env') ?? {};
  const said = [value, ...over.map((weaker) => weaker.value)].toReversed();
  const env = new Map(said.flatMap((one) => Object.entries(one as Readonly<Record<string, string>>)));
  const missing = requirements.filter((one) => one.required && (env.get(one.name) ?? '') === '');
  if (missing.length > 0 && !ask) throw missingEnv(missing, give);
  for (const requirement of missing) {
    const answer = ask ? await ask(requirement) : '';
    if (answer === '') throw missingEnv([requirement], give);
    env.set(requirement.name, answer);
  }
  for (const requirement of requirements) checkChoice(requirement, env.get(requirement.name));
  const secret = requirements.filter((one) => one.secret && env.has(one.name)).map((one) => one.name);
  return { env: Object.fromEntries(env), secret };
}

function missingEnv(
  missing: readonly Requirement[],
  give: NonNullable<EnvInputs['give']> = withFlag,
): SkepError {
  const names = missing.map((one) => one.name);
  const about = missing.length === 1 ? missing[0]?.description : undefined;
  return new SkepError('run/missing-env', {
    message: `missing required environment variable${names.length > 1 ? 's' : ''}: ${names.join(', ')}${about ? ` (${about})` : ''}`,
    hint: `give ${names.length > 1 ? 'them' : 'it'} ${give(names[0] ?? 'KEY', missing[0]?.secret)}`,
    detail: { names },
  });
}

/** A command line is seen by others and kept by shells, so no secret is to stand in one. */
const withFlag = (name: string, secret?: boolean): string =>
  secret
    ? `with -e ${name} (from your environment) or --env-file; a terminal asks for secrets unseen`
    : `with -e ${name}=VALUE or --env-file`;

function checkChoice({ name, choices, secret }: Requirement, value: string | undefined): void {
  if (value === undefined || choices === undefined || choices.includes(value)) return;
  throw new SkepError('run/invalid-env', {
    message: `the environment variable ${name} ${secret ? 'has a value that is' : `is "${value}",`} none of: ${choices.join(', ')}`,
  });
}

/** Fails with `run/invalid-env` unless `key` can name an environment variable; `where` says where it was written. */
function checkEnvKey(key: string, where: string): string {
  if (VARIABLE_NAME.test(key)) return key;
  const what = `environment variable key${key === '' ? '' : ` ${JSON.stringify(key)}`} in ${where}`;
  throw new SkepError('run/invalid-env', { message: `${key === '' ? 'empty' : 'invalid'} ${what}` });
}

/**
 * Variables of one env file (docs/behaviour/run.md#env-files): `KEY=VALUE` lines, `export ` allowed, comments and lines
 * without `=` skipped, one pair of matching outer quotes removed, no escapes, no interpolation, the last of a repeated
 * key wins.
 */
export function parseEnvFile(text: string, path: string): Record<string, string> {
  const variables = new Map<string, string>();
  for (const [index, raw] of text
    .replace(/^\uFEFF/, '')
    .split('\n')
    .entries()) {
    const line = raw.trim().replace(/^export\s+/, '');
    const equals = line.indexOf('=');
    if (line.startsWith('#') || equals === -1) continue;
    const where = `${path}:${index + 1}`;
    if (line.includes('\0'))
      throw new SkepError('run/invalid-env', { message: `${where} holds a NUL character` });
    variables.set(checkEnvKey(line.slice(0, equals), where), unquote(line.slice(equals + 1)));
  }
  return Object.fromEntries(variables);
}

function unquote(value: string): string {
  const quote = value.at(0);
  const quoted = value.length >= 2 && (quote === '"' || quote === "'") && value.endsWith(quote);
  return quoted ? value.slice(1, -1) : value;
}

/**
 * Variables of `-e`: `KEY=VALUE`, or `KEY` alone for the value that the command itself has, so that a secret need not
 * stand on a command line. The last of a repeated key wins. Fails with `run/invalid-env`.
 */
export function readEnvFlags(
  items: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string>> {
  return Object.fromEntries(items.map((item) => readItem(item, env)));
}

function readItem(item: string, env: Readonly<Record<string, string | undefined>>): [string, string] {
  const equals = item.indexOf('=');
  if (equals !== -1) return [checkEnvKey(item.slice(0, equals), '--env'), item.slice(equals + 1)];
  const key = checkEnvKey(item, '--env');
  const value = env[key];
  if (value !== undefined) return [key, value];
  throw new SkepError('run/invalid-env', {
    message: `the environment variable ${key} is not set here, so -e ${key} has no value to take`,
    hint: `set ${key} first, or write -e ${key}=VALUE`,
  });
}
