import { ADMIN_SCHEMAS } from '../admin/admin-schemas.ts';
import { list, object, ref, text, time } from '../route/json-schema.ts';

/** Components of the OpenAPI document, in JSON Schema 2020-12. Documents are open: members nobody knows pass through. */
const bundle = object(
  {
    namespace: text,
    name: text,
    description: text,
    version: text,
    status: { enum: ['ACTIVE', 'DEPRECATED', 'ARCHIVED'] },
    title: text,
    license: text,
    compatibility: text,
    allowedTools: list(text),
    packages: list(object({ registryType: { enum: ['oci', 'git'] } })),
    isLatest: { type: 'boolean' },
    createdAt: time,
    updatedAt: time,
  },
  ['namespace', 'name', 'description', 'version', 'status', 'isLatest', 'createdAt', 'updatedAt'],
);

/** A page of items: `items` is the member that holds them. */
function page(items: string, schema: string): object {
  return object({ [items]: list(ref(schema)), metadata: ref('PageMetadata') });
}

export const SCHEMAS: Readonly<Record<string, object>> = {
  Error: object({ error: { ...text, description: 'What went wrong' } }),
  Server: object(
    {
      $schema: { ...text, format: 'uri' },
      name: text,
      title: text,
      description: text,
      version: text,
      websiteUrl: text,
      repository: object({ url: text, source: text, id: text, subfolder: text }, []),
      icons: list(object({ src: text }, [])),
      packages: list(
        object({ registryType: text, identifier: text, version: text }, ['registryType', 'identifier']),
      ),
      remotes: list(object({ type: text, url: text })),
      _meta: object({}),
    },
    ['name', 'description', 'version'],
  ),
  OfficialMeta: object({
    status: { ...text, examples: ['active', 'deprecated'] },
    publishedAt: time,
    updatedAt: time,
    statusChangedAt: time,
    isLatest: { type: 'boolean' },
  }),
  ServerItem: object({
    server: ref('Server'),
    _meta: object({ 'io.modelcontextprotocol.registry/official': ref('OfficialMeta') }),
  }),
  PageMetadata: object(
    {
      count: { type: 'integer', description: 'Items on this page' },
      nextCursor: { ...text, description: 'Absent on the last page' },
    },
    ['count'],
  ),
  ServerList: page('servers', 'ServerItem'),
  Skill: bundle,
  SkillList: page('skills', 'Skill'),
  Plugin: bundle,
  PluginList: page('plugins', 'Plugin'),
  Caller: object({
    subject: { ...text, description: '`sub` of the token' },
    roles: list({ enum: ['superAdmin', 'manageSources', 'manageRegistries', 'manageEntries'] }),
  }),
  ResourceMetadata: object(
    {
      resource: { ...text, format: 'uri' },
      authorization_servers: list({ ...text, format: 'uri' }),
      bearer_methods_supported: list(text),
      scopes_supported: list(text),
    },
    ['resource', 'authorization_servers', 'bearer_methods_supported'],
  ),
  Health: object({ status: { const: 'healthy' } }),
  Readiness: object(
    {
      status: { const: 'ready' },
      identity_providers_away: {
        type: 'array',
        items: text,
        description: 'Names of identity providers that do not answer; their callers get 503',
      },
    },
    ['status'],
  ),
  Version: object({
    version: text,
    commit: text,
    build_date: text,
    runtime_version: text,
    go_version: { ...text, description: 'The same as runtime_version' },
    platform: text,
  }),
  OpenApi: object({ openapi: text, info: object({}), paths: object({}) }),
  ...ADMIN_SCHEMAS,
};
