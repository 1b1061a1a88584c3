import type { BuildSecrets } from './build-secrets.ts';
import type { RuntimeEnvironment } from './environment.ts';

/** The machine as what looks packages up is to see it. */
export function withBuildSecrets(
  environment: RuntimeEnvironment,
  { env, files }: BuildSecrets,
): RuntimeEnvironment {
  const own = { ...environment.env };
  // One name for the index must not win over the other because the person's shell has that.
  if (PYTHON_INDEX.some((name) => env[name] !== undefined)) for (const name of PYTHON_INDEX) delete own[name];
  return { ...environment, env: { ...own, ...env }, loginFiles: files };
}

const PYTHON_INDEX = ['UV_DEFAULT_INDEX', 'UV_INDEX_URL', 'PIP_INDEX_URL'] as const;

/** Values that uv and pip each look for under another name are given under all of them. */
export function forAllManagers(env: BuildSecrets['env']): BuildSecrets['env'] {
  const named = PYTHON_INDEX.map((name) => env[name]).find((value) => value !== undefined && value !== '');
  if (named === undefined) return env;
  // uv lets an index have a name: `name=address`.
  const address = named.replace(/^[\w.-]+=(?=https?:)/, '');
  return { ...env, UV_DEFAULT_INDEX: named, PIP_INDEX_URL: address };
}
