import type { PlainHttp } from '@skep/auth/token/issuer-fetch.ts';
import type { ConfigPath } from './problem.ts';

/** A value from a flag or variable that takes the place of one in the file. */
export interface Override {
  readonly path: ConfigPath;
  readonly value: string;
  /** What to name in a message: `--auth-mode`, `SKEP_REGISTRY_STORAGE_PATH`. */
  readonly from: string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

const PREFIX = 'SKEP_REGISTRY_';
// Deployments that move over keep their variables; ours win where both are set.
const ALIAS_PREFIX = 'THV_REGISTRY_';

/** Scalar members that a variable may set: `auth.mode` is `SKEP_REGISTRY_AUTH_MODE`. */
const MEMBERS: readonly ConfigPath[] = [
  ['auth', 'mode'],
  ['auth', 'oauth', 'resourceUrl'],
  ['auth', 'oauth', 'realm'],
  ['storage', 'path'],
  ...[
    'host',
    'port',
    'database',
    'user',
    'migrationUser',
    'password',
    'migrationPassword',
    'sslMode',
    'sslRootCert',
    'maxOpenConns',
    'maxIdleConns',
    'connMaxLifetime',
    'maxMetaSize',
  ].map((member) => ['database', member]),
];

/** Variables that are read elsewhere: flags of `serve`, and the log. */
const OTHERS = ['ADDRESS', 'INTERNAL_ADDRESS', 'LOG_LEVEL', 'INSECURE_URL', 'COMPRESS_RESPONSE'];

/** The environment with the `THV_REGISTRY_` names filled in under ours. */
export function withAliases(env: Environment): Environment {
  const aliases = Object.entries(env)
    .filter(([name]) => name.startsWith(ALIAS_PREFIX))
    .map(([name, value]) => [PREFIX + name.slice(ALIAS_PREFIX.length), value]);
  const own = Object.entries(env).filter(([, value]) => value !== undefined && value !== '');
  return { ...Object.fromEntries(aliases), ...Object.fromEntries(own) };
}

/** `SKEP_REGISTRY_INSECURE_URL` lets identity providers be anywhere over http: by environment only, never by a file. */
export function plainHttpFrom(env: Environment): PlainHttp {
  return env[`${PREFIX}INSECURE_URL`] === 'true' ? 'any' : 'loopback';
}

/** What the environment sets. Empty variables set nothing. */
export function overridesFrom(env: Environment): Override[] {
  return MEMBERS.flatMap((path) => {
    const from = variableOf(path);
    const value = env[from];
    return value === undefined || value === '' ? [] : [{ path, value, from }];
  });
}

/**
 * Variables with our prefix that nothing reads. A warning and no error: an orchestrator that links a service called
 * skep-registry sets `SKEP_REGISTRY_PORT` and `SKEP_REGISTRY_SERVICE_…` by itself, which are not even worth that.
 */
export function unreadVariables(env: Environment): string[] {
  const read = new Set([...MEMBERS.map(variableOf), ...OTHERS.map((name) => PREFIX + name)]);
  return Object.keys(env).filter(
    (name) =>
      name.startsWith(PREFIX) && !read.has(name) && !/^(PORT|SERVICE)(_|$)/.test(name.slice(PREFIX.length)),
  );
}

/** The document with the overrides in place; a document that is no map is left to the shape to report. */
export function override(document: unknown, overrides: readonly Override[]): unknown {
  return overrides.reduce((value, { path, value: to }) => replaced(value, path, to), document);
}

function replaced(value: unknown, [step, ...rest]: ConfigPath, to: string): unknown {
  if (step === undefined) return to;
  if (value === undefined || value === null) return { [step]: replaced(undefined, rest, to) };
  if (typeof value !== 'object' || Array.isArray(value)) return value;
  return { ...value, [step]: replaced(Reflect.get(value, step), rest, to) };
}

function variableOf(path: ConfigPath): string {
  return PREFIX + path.map((step) => String(step).toUpperCase()).join('_');
}
