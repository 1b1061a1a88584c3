import { z } from 'zod';
import { faultLine } from './checked-text.ts';
import { EXTENSION_NAMESPACE, PUBLISHER_META } from './extension-summary.ts';
import { fullName } from './native-group.ts';
import { SERVER_SCHEMA_URL } from './server-json.ts';

/**
 * The older ToolHive catalogue: maps of container and remote servers, converted to official server documents. Members
 * without a place in a server document go into the publisher extension, so that nothing is lost.
 */
const text = z.string();

const common = z.looseObject({
  name: text.nullish(),
  title: text.nullish(),
  description: text.min(1, 'the description is empty'),
  repository_url: text.nullish(),
  status: text.nullish(),
});

type Common = z.infer<typeof common>;

const requirement = z.looseObject({
  name: text,
  description: text.nullish(),
  required: z.boolean().nullish(),
  secret: z.boolean().nullish(),
});

const container = common.extend({
  image: text.min(1, 'the image is empty'),
  transport: z.enum(['stdio', 'sse', 'streamable-http']).nullish(),
  target_port: z.number().int().min(0).max(65535).nullish(),
  env_vars: z.array(requirement).nullish(),
});

const remote = common.extend({
  url: text.min(1, 'the URL is empty'),
  transport: z.enum(['sse', 'streamable-http']).nullish(),
  headers: z.array(requirement).nullish(),
});

const SOURCES: Readonly<Record<string, string>> = {
  'github.com': 'github',
  'gitlab.com': 'gitlab',
  'bitbucket.org': 'bitbucket',
};

function repositoryOf(url: string | null | undefined): object {
  if (!url) return {};
  const host = URL.canParse(url) ? new URL(url).hostname : '';
  return { repository: { url, source: SOURCES[host] ?? (host === '' ? 'git' : host) } };
}

/** `0.4.2` of `ghcr.io/acme/x:v0.4.2`; `1.0.0` where the tag is no three-part version. */
function versionOf(image: string): string {
  const tag = /:([^:/@]+)(?:@.*)?$/.exec(image)?.[1] ?? '';
  return /^v?(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?)$/.exec(tag)?.[1] ?? '1.0.0';
}

function input({ name, description, required, secret, ...rest }: z.infer<typeof requirement>): object {
  return {
    ...(description ? { description } : {}),
    ...(required ? { isRequired: true } : {}),
    ...(secret ? { isSecret: true } : {}),
    name,
    ...rest,
  };
}

/** `target` says where it runs, which `at` names; what a server document has no place for is the extension. */
function serverOf(
  key: string,
  { name, title, description, repository_url: repository, status, ...extension }: Common,
  { at, version, target }: { readonly at: string; readonly version: string; readonly target: object },
): object {
  return {
    $schema: SERVER_SCHEMA_URL,
    name: fullName(name || key),
    description,
    ...(title ? { title } : {}),
    ...repositoryOf(repository),
    version,
    ...target,
    _meta: {
      [PUBLISHER_META]: {
        [EXTENSION_NAMESPACE]: { [at]: { ...extension, status: status || 'active' } },
      },
    },
  };
}

function fromContainer(
  key: string,
  { image, transport, target_port: port, env_vars: env, ...entry }: z.infer<typeof container>,
): object {
  const type = transport ?? 'stdio';
  const url = `http://localhost${port ? `:${port}` : ''}`;
  const server = {
    registryType: 'oci',
    identifier: image,
    transport: type === 'stdio' ? { type } : { type, url },
    ...(env?.length ? { environmentVariables: env.map(input) } : {}),
  };
  return serverOf(key, entry, { at: image, version: versionOf(image), target: { packages: [server] } });
}

function fromRemote(key: string, { url, transport, headers, ...entry }: z.infer<typeof remote>): object {
  const server = {
    type: transport ?? 'sse',
    url,
    ...(headers?.length ? { headers: headers.map(input) } : {}),
  };
  return serverOf(key, entry, { at: url, version: '1.0.0', target: { remotes: [server] } });
}

/** One native entry: the server document it becomes, or why it cannot become one. */
export type Converted =
  | { readonly key: string; readonly document: object }
  | { readonly key: string; readonly fault: string };

function* convert<T>(
  map: unknown,
  schema: z.ZodType<T>,
  build: (key: string, entry: T) => object,
): Generator<Converted> {
  if (typeof map !== 'object' || map === null) return;
  for (const [key, value] of Object.entries(map)) {
    const decoded = schema.safeParse(value);
    yield decoded.success
      ? { key, document: build(key, decoded.data) }
      : { key, fault: faultLine(decoded.error) };
  }
}

function* members(holder: object): Generator<Converted> {
  yield* convert('servers' in holder ? holder.servers : undefined, container, fromContainer);
  yield* convert('remote_servers' in holder ? holder.remote_servers : undefined, remote, fromRemote);
}

/**
 * Converts a native file entry by entry, so that the reader may stop; members of groups included (groups themselves have
 * no place in server documents).
 */
export function* convertNative(file: object): Generator<Converted> {
  yield* members(file);
  const groups: unknown = 'groups' in file ? file.groups : undefined;
  for (const group of Array.isArray(groups) ? groups : []) {
    if (typeof group === 'object' && group !== null) yield* members(group);
  }
}
