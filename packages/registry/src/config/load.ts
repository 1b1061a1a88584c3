import { realpath } from 'node:fs/promises';
import { dirname, isAbsolute, relative, resolve } from 'node:path';
import type { PlainHttp } from '@skep/auth/token/issuer-fetch.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readText } from '@skep/core/files/read-limited.ts';
import type { DesiredState } from '../store/desired-state.ts';
import { IN_MEMORY } from '../store/sqlite/private-file.ts';
import { resolvedAudit, type AuditConfig } from './audit.ts';
import { checkRelations } from './check-relations.ts';
import { checkShape } from '../shape/check-shape.ts';
import { claimSet } from '../shape/claims.ts';
import { draftOf } from '../shape/draft.ts';
import { resolvedDatabase, type StoreConfig } from './database.ts';
import type { Limits } from '../shape/limits.ts';
import { override, type Override } from './overrides.ts';
import { pathText, type Problem } from '../shape/problem.ts';
import { resolveAuth, type AuthConfig } from './auth.ts';
import { configShape, type ConfigDraft, type ConfigShape } from './shape.ts';
import { sourceSettings } from '../sources/source-body.ts';
import { readYaml, type YamlText } from '../shape/yaml-text.ts';

/** A configuration that has passed every check; nothing in it is unsupported. */
export type RegistryConfig = StoreConfig &
  DesiredState &
  Readonly<Pick<ConfigShape, 'limits' | 'cors' | 'telemetry'>> & {
    /** The file it was read from, absolute. */
    readonly path: string;
    readonly audit: AuditConfig;
    readonly auth: AuthConfig;
  };

/** A configuration that has passed its checks; its sources as they were written. */
type Checked = Omit<ConfigShape, 'sources'> & { readonly sources: NonNullable<ConfigDraft['sources']> };

export interface LoadOptions {
  /** As given; a relative path must stay inside the working directory. */
  readonly path: string;
  readonly workingDirectory: string;
  /** Where the embedded store lies when the file does not say. */
  readonly defaultStorePath: string;
  readonly overrides: readonly Override[];
  /** Which http addresses of identity providers are accepted; by default those of this machine. */
  readonly plainHttp?: PlainHttp;
}

/** The configuration, or one line `file:line:column: path: message` for each thing that is wrong, in file order. */
export type Loaded = { readonly config: RegistryConfig } | { readonly problems: readonly string[] };

const MAX_BYTES = 1024 * 1024;

/**
 * Reads and checks a configuration file: all problems at once, never only the first. Fails with `config/unreadable` and the `file/…` codes when there is nothing to check.
 */
export async function loadConfig(options: LoadOptions): Promise<Loaded> {
  const path = await locateFile(options);
  const yaml = readYaml(await readText(path, { maxBytes: MAX_BYTES, what: 'configuration' }));
  if ('problems' in yaml) {
    const lines = yaml.problems.map(
      ({ line, column, message }) => `${position(options.path, line, column)}: ${message}`,
    );
    return { problems: lines };
  }
  const value = override(yaml.value, options.overrides);
  const shape = checkShape(configShape, value);
  const problems = [
    ...('problems' in shape ? shape.problems : []),
    ...checkRelations(value, options.plainHttp),
  ];
  if ('data' in shape && problems.length === 0) {
    const { sources = [] } = draftOf(configShape, value) ?? {};
    return { config: resolved({ ...shape.data, sources }, path, options) };
  }
  return { problems: report(problems, yaml, options) };
}

async function locateFile({ path, workingDirectory }: LoadOptions): Promise<string> {
  const given = resolve(workingDirectory, path);
  const real = await realpath(given).catch(() => given);
  const inside = relative(await realpath(workingDirectory), real);
  if (!isAbsolute(path) && (inside.startsWith('..') || isAbsolute(inside))) {
    throw new SkepError('config/unreadable', {
      message: `the configuration "${path}" lies outside the working directory`,
      hint: 'give its absolute path',
    });
  }
  return real;
}

function report(problems: readonly Problem[], yaml: YamlText, options: LoadOptions): string[] {
  const placed = problems.map((problem) => {
    const path = pathText(problem.path);
    const origin = options.overrides.find((override) => pathText(override.path) === path);
    const { line, column } = yaml.locate(problem);
    const where = origin === undefined ? position(options.path, line, column) : origin.from;
    return { line, column, text: [where, path, problem.message].filter((part) => part !== '').join(': ') };
  });
  return placed.toSorted((a, b) => a.line - b.line || a.column - b.column).map(({ text }) => text);
}

function position(path: string, line: number, column: number): string {
  return `${path}:${line}:${column}`;
}

/** Paths become absolute: relative ones start at the configuration file, so that it works from every directory. */
function resolved(
  { sources, registries, database, storage, audit, auth, ...shape }: Checked,
  path: string,
  { defaultStorePath, plainHttp = 'loopback' }: LoadOptions,
): RegistryConfig {
  const directory = dirname(path);
  const limits = limitsOf(shape.limits, database?.maxMetaSize);
  const claimLimits = limits.claims;
  return {
    path,
    sources: sources.map((source) => ({
      name: source?.name ?? '',
      ...sourceSettings(source ?? {}, directory, claimLimits),
    })),
    registries: registries.map(({ claims, ...registry }) => ({
      ...registry,
      claims: claimSet(claims, claimLimits),
    })),
    ...shape,
    limits,
    audit: resolvedAudit(audit, directory),
    auth: resolveAuth(auth, { plainHttp, claimLimits }),
    ...(database === undefined
      ? { storage: { path: storePath(storage.path, directory) ?? defaultStorePath } }
      : { database: resolvedDatabase(database, directory) }),
  };
}

/** `database.maxMetaSize` counts before the limit of the same meaning. */
function limitsOf(limits: Limits, maxMetaSize: number | undefined): Limits {
  return maxMetaSize === undefined ? limits : Object.freeze({ ...limits, maxMetaSize });
}

function storePath(path: string | undefined, directory: string): string | undefined {
  return path === undefined || path === IN_MEMORY ? path : resolve(directory, path);
}
