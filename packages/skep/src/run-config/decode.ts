import { VARIABLE_NAME } from '@skep/core/catalog/variable-name.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { parseDuration } from '@skep/core/time/duration.ts';
import { z } from 'zod';
import { isWorkloadName } from './workload-name.ts';
import { profileSchema } from '../permissions/profile.ts';
import { CONFINED_USER } from '../runtime/sandbox/confined-user.ts';
import { isPortMapping } from './port-mapping.ts';
import { SCHEMA_VERSION, type RunConfig } from './run-config.ts';
import { isTargetHost } from './target-host.ts';

const port = z.int().min(0).max(65_535);
const text = z.string();
const record = z.record(text, text);
const noNul = text.refine((value) => !value.includes('\0'), 'contains NUL');

const variable = z.string().regex(VARIABLE_NAME, 'not a variable name');

const isTimeout = (value: string): boolean => {
  try {
    const milliseconds = parseDuration(value);
    return milliseconds >= 1 && milliseconds < 2 ** 31;
  } catch {
    return false;
  }
};

/** Keys this release acts on. Everything else goes to `rest`. */
const known = z.object({
  schema_version: text
    .default(SCHEMA_VERSION)
    .transform((version) => (version === '' ? SCHEMA_VERSION : version))
    .refine((version) => version.startsWith('v0.'), 'written by a newer release'),
  name: text.refine(isWorkloadName, 'not a workload name'),
  image: noNul.min(1, 'is empty'),
  package: z
    .strictObject({
      kind: z.literal('package'),
      ecosystem: z.enum(['npm', 'pypi', 'go']),
      name: noNul.min(1),
      version: noNul.exactOptional(),
    })
    .exactOptional(),
  image_is_ours: z.boolean().default(false),
  // Loose: members of later releases are kept.
  runtime_config: z
    .looseObject({
      builder_image: noNul.exactOptional(),
      additional_packages: z.array(noNul).exactOptional(),
    })
    .exactOptional(),
  registry_url: text.exactOptional(),
  registry_api_url: text.exactOptional(),
  registry_server_name: text.exactOptional(),
  cmd_args: z.array(noNul).nullish(),
  transport: z.enum(['stdio', 'sse', 'streamable-http']),
  proxy_mode: z.enum(['streamable-http', 'sse']).or(z.literal('')).exactOptional(),
  host: z.ipv4().default('127.0.0.1'),
  port: port.default(0),
  allowed_origins: z.array(text.regex(/^https?:\/\/[^/\s@]+$/i, 'is not an origin')).exactOptional(),
  target_port: port.exactOptional(),
  // Other tools write an empty text for "not given".
  target_host: text.refine((host) => host === '' || isTargetHost(host), 'is not a host name').exactOptional(),
  publish: z.array(text.refine(isPortMapping, 'is not hostPort:containerPort')).nullish(),
  permission_profile_name_or_path: text.exactOptional(),
  permission_profile: profileSchema.nullish(),
  sandbox_user: text.regex(CONFINED_USER, 'is not root, UID or UID:GID').exactOptional(),
  env_vars: z.record(variable, noNul).nullish(),
  secret_env: z.array(variable).nullish(),
  volumes: z.array(text).nullish(),
  mount_sources: record.exactOptional(),
  ignore_config: z.looseObject({ load_global: z.boolean().default(true) }).exactOptional(),
  container_labels: record.nullish(),
  group: text.exactOptional(),
  debug: z.boolean().default(false),
  no_check: z.boolean().exactOptional(),
  request_timeout: text.refine(isTimeout, 'is not a duration such as 30s or 2m30s').exactOptional(),
  trust_proxy_headers: z.boolean().default(false),
  runtime: z
    .object({
      kind: z.enum(['docker', 'sandbox']),
      id: text,
      endpoint: text,
      shares_network: text.exactOptional(),
    })
    .exactOptional(),
});

/** The keys of a run configuration that this release acts on. */
export const USED_KEYS: ReadonlySet<string> = new Set(Object.keys(known.shape));

/** Derived from other keys when written; what a file says about them is not trusted. */
const DERIVED = new Set(['base_name', 'container_name']);

/**
 * Turns parsed JSON into a run config. Fails with `run/invalid-config` naming the first key that is wrong; `where` is
 * the file it came from. Numbers and members it does not know survive in `rest`.
 */
export function decodeRunConfig(value: unknown, where: string): RunConfig {
  const result = known.safeParse(value);
  if (!result.success) {
    const issue = result.error.issues[0];
    const key = issue?.path.map(String).join('.') ?? '';
    throw new SkepError('run/invalid-config', {
      message: `${where} is not a run configuration: ${key === '' ? '' : `"${key}": `}${issue?.message ?? 'wrong shape'}`,
    });
  }
  return { ...withDefaults(result.data), rest: membersUnknown(value) };
}

function withDefaults(data: z.infer<typeof known>): Omit<RunConfig, 'rest'> {
  const { proxy_mode, cmd_args, publish, permission_profile, env_vars, secret_env, volumes, ...same } = data;
  return {
    ...same,
    cmd_args: cmd_args ?? [],
    // Spec run-workload §7.1: for transports other than stdio the proxy mode is the transport.
    proxy_mode: same.transport === 'stdio' ? proxy_mode || 'streamable-http' : same.transport,
    publish: publish ?? [],
    permission_profile: permission_profile ?? {},
    env_vars: env_vars ?? {},
    secret_env: secret_env ?? [],
    volumes: volumes ?? [],
    container_labels: same.container_labels ?? {},
    group: same.group === undefined || same.group === '' ? 'default' : same.group,
  };
}

function membersUnknown(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return {};
  const unknown = Object.entries(value).filter(
    ([key]) => !Object.hasOwn(known.shape, key) && !DERIVED.has(key),
  );
  return Object.fromEntries(unknown);
}
