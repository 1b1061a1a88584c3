import { VARIABLE_NAME } from '@skep/core/catalog/variable-name.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';

/** Fails with `run/invalid-env` unless `key` can name an environment variable; `where` says where it was written. */
export function checkEnvKey(key: string, where: string): string {
  if (key === '')
    throw new SkepError('run/invalid-env', { message: `empty environment variable key in ${where}` });
  if (VARIABLE_NAME.test(key)) return key;
  throw new SkepError('run/invalid-env', {
    message: `invalid environment variable key ${JSON.stringify(key)} in ${where}`,
  });
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
    variables.set(
      checkEnvKey(line.slice(0, equals), `${path}:${index + 1}`),
      unquote(line.slice(equals + 1)),
    );
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
