import { isSecretName } from '@skep/core/log/redact.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { memberPlace } from '@skep/core/json/member-place.ts';
import { storedRows, storedShape, toDocument, type StoredOf } from '@skep/core/settings/stored.ts';
import { runSettings } from '../settings/run-settings.ts';
import type { RuntimeInfo } from '../runtime/runtime.ts';
import { isOwnedBy, parseReference } from '../secrets/reference.ts';
import { toolhiveLabels } from './labels.ts';

type Stored = StoredOf<typeof runSettings>;

/** Which engine a workload belongs to; another engine's workloads are left alone. */
export type RuntimeReference = NonNullable<Stored['runtime']>;

/** How a run configuration keeps which runtime its workload belongs to. */
export function referenceTo(info: RuntimeInfo): RuntimeReference {
  const { kind, id, endpoint, narrowNetwork, mapsUsers = false } = info;
  return {
    kind,
    id,
    endpoint,
    ...(narrowNetwork === undefined ? {} : { narrow_network: narrowNetwork }),
    ...(mapsUsers ? { maps_users: true } : {}),
  };
}

/**
 * The portable description of one workload: what `export` writes, `--from-config` reads and `start` replays. Its members
 * are the rows of the settings table that have a key.
 */
export type RunConfig = Omit<Stored, 'proxy_mode'> & {
  readonly proxy_mode: Exclude<Stored['proxy_mode'], ''>;
  /** Members this release does not know, in their original form. */
  readonly rest: Readonly<Record<string, unknown>>;
};

/** Repeat the name, for other tools; what a file says in them is not trusted. */
export const NAMES_AGAIN: readonly string[] = ['container_name', 'base_name'];

const shape = storedShape(runSettings);
const known = new Set([...storedRows(runSettings).map(({ key }) => key.split('.')[0]), ...NAMES_AGAIN]);
const local = storedRows(runSettings).filter((row) => row.local === true);

/**
 * Turns parsed JSON into a run configuration. Fails with `run/invalid-config` naming the first key that is wrong; `where`
 * is the file it came from, and with its `text` the line is named too. Members it does not know survive in `rest`.
 */
export function decodeRunConfig(value: unknown, where: string, text = ''): RunConfig {
  const stored = shape(value, (why, ...path) => {
    throw invalidConfig(where, path, why, { text });
  });
  const unknown = Object.entries(isRecord(value) ? value : {}).filter(([key]) => !known.has(key));
  const { transport, proxy_mode } = stored;
  return {
    ...stored,
    // What speaks HTTP itself is not translated: its proxy speaks the same.
    proxy_mode: transport === 'stdio' ? proxy_mode || 'streamable-http' : transport,
    rest: Object.fromEntries(unknown),
  };
}

/** `run/invalid-config` that names the member, and where it stands in the text when there is one. */
export function invalidConfig(
  where: string,
  path: readonly (string | number)[],
  why: string,
  { text = '', hint }: { readonly text?: string; readonly hint?: string },
): SkepError {
  const place = path.length === 0 ? undefined : memberPlace(text, path);
  const at = place === undefined ? '' : ` at line ${place.line}, column ${place.column}`;
  const key = path.length === 0 ? '' : `"${path.join('.')}": `;
  return new SkepError('run/invalid-config', {
    message: `${where} is not a run configuration${at}: ${key}${why}`,
    hint,
  });
}

/**
 * What a run decided, with what it was given: settings that hold their default are not kept, and are the same when it is
 * read. A decided member stands for what was given under its key.
 */
export function runConfigOf(
  given: Readonly<Record<string, unknown>>,
  decided: { readonly [Key in keyof Stored]?: Stored[Key] | undefined },
): RunConfig {
  return decodeRunConfig({ ...toDocument(runSettings, given), ...decided }, 'what the run decided');
}

/** The state file's text, secrets included, so it is only ever written 0600. */
export function encodeRunConfig({ rest, ...config }: RunConfig): string {
  const { schema_version, name, ...own } = config;
  const again = Object.fromEntries(NAMES_AGAIN.map((key) => [key, name]));
  return `${JSON.stringify({ schema_version, name, ...again, ...own, ...rest }, null, 2)}\n`;
}

/**
 * What `export` writes: readable by ToolHive, which looks for its own labels, without the values of secret variables and
 * without what belongs to this machine (the runtime, where mounts lead to).
 */
export function encodeExport(config: RunConfig): string {
  const env = Object.entries(config.env_vars).filter(([name]) => !config.secret_env.includes(name));
  const container_labels = { ...config.container_labels, ...toolhiveLabels(config) };
  // What is kept for this workload alone is nowhere else under that name: an import asks for its value.
  const isOwned = (text: string): boolean => isOwnedBy(config.name, parseReference(text).name);
  const { secrets = [], telemetry_config, header_forward: _headers, ...others } = config;
  const { kept: headers } = exportedHeaders(config);
  const owned = secrets.filter(isOwned).map((text) => parseReference(text).target);
  const shared = secrets.filter((text) => !isOwned(text));
  const elsewhere = Object.fromEntries(local.map(({ key }) => [key, undefined]));
  return encodeRunConfig({
    ...others,
    env_vars: Object.fromEntries(env),
    secret_env: [...config.secret_env, ...owned],
    ...(shared.length === 0 ? {} : { secrets: shared }),
    // Logins of the collector travel as little as other secrets.
    ...(telemetry_config && { telemetry_config: { ...telemetry_config, headers: undefined } }),
    ...(headers && { header_forward: headers }),
    container_labels,
    ...elsewhere,
  });
}

/** The headers as they are exported, and the names of those whose values would tell a secret, which are not. */
export function exportedHeaders({ header_forward: headers }: Pick<RunConfig, 'header_forward'>): {
  readonly kept: RunConfig['header_forward'];
  readonly leftOut: readonly string[];
} {
  const plain = Object.entries(headers?.add_plaintext_headers ?? {});
  const leftOut = plain.map(([name]) => name).filter(isSecretName);
  if (headers === undefined || leftOut.length === 0) return { kept: headers, leftOut };
  const open = plain.filter(([name]) => !isSecretName(name));
  const { add_headers_from_secret: hidden } = headers;
  const kept = {
    ...(open.length > 0 && { add_plaintext_headers: Object.fromEntries(open) }),
    ...(hidden && { add_headers_from_secret: hidden }),
  };
  return { kept: Object.keys(kept).length === 0 ? undefined : kept, leftOut };
}
