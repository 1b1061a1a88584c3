import { SkepError } from '@skep/core/errors/skep-error.ts';
import { checkEnvKey } from './env-file.ts';

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
