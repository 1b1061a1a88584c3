import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { AppConfig } from '../config/app-config.ts';
import { schemeOf, type PackageSource } from '../protocol/reference.ts';
import { runtimeEnvShape } from '../protocol/runtime-env.ts';
import type { RunConfig } from '../run-config/run-config.ts';

type BuildConfig = NonNullable<RunConfig['runtime_config']>;

const SCHEMES: ReadonlySet<string> = new Set(['npx', 'uvx', 'go']);

/**
 * How the configuration file says to build packages of that scheme: flags say so in its place, each by itself. Fails
 * with `config/invalid`.
 */
export function runtimeConfigOf(
  { runtimeConfigs = {} }: Pick<AppConfig, 'runtimeConfigs'>,
  source: PackageSource,
): BuildConfig {
  const all = membersOf(runtimeConfigs, 'it');
  for (const scheme of Object.keys(all)) if (!SCHEMES.has(scheme)) throw invalid(`"${scheme}" is no scheme`);
  const scheme = schemeOf(source);
  const own = membersOf(all[scheme] ?? {}, scheme);
  const { builder_image, additional_packages, build_with, runtime_env, ...others } = own;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw invalid(`"${scheme}.${unknown}" is no part of it`);
  if (build_with !== undefined && scheme !== 'uvx') throw invalid(`"${scheme}.build_with" is for uvx alone`);
  if (builder_image !== undefined && typeof builder_image !== 'string')
    throw invalid(`"${scheme}.builder_image" is no text`);
  return {
    ...(builder_image === undefined ? {} : { builder_image }),
    ...(additional_packages === undefined
      ? {}
      : { additional_packages: textsOf(additional_packages, scheme) }),
    ...(runtime_env === undefined
      ? {}
      : {
          runtime_env: runtimeEnvShape(runtime_env, (why, name = '') => {
            throw invalid(`"${[scheme, 'runtime_env', name].filter(Boolean).join('.')}" ${why}`);
          }),
        }),
    ...(build_with === undefined ? {} : { build_with: textsOf(build_with, scheme) }),
  };
}

function membersOf(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalid(`${what} is no mapping`);
  return value as Readonly<Record<string, unknown>>;
}

function textsOf(value: unknown, scheme: string): readonly string[] {
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value;
  throw invalid(`a list of "${scheme}" is no list of texts`);
}

const invalid = (why: string): SkepError =>
  new SkepError('config/invalid', {
    message: `runtime_configs of the configuration file: ${why}`,
    hint: 'it holds npx, uvx and go with builder_image, additional_packages, runtime_env and, for uvx, build_with',
  });
