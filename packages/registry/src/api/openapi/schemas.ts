/** The few shapes that the components of the OpenAPI document are made of, in JSON Schema 2020-12. */
export const text = { type: 'string' };
const time = { type: 'string', format: 'date-time' };
const uri = { ...text, format: 'uri' };
const flag = { type: 'boolean' };
const count = { type: 'integer', minimum: 0 };
const ref = (name: string): object => ({ $ref: `#/components/schemas/${name}` });
const list = (items: object): object => ({ type: 'array', items });

/** Open: members nobody knows pass through. A member whose name ends with `?` is not required. */
function object(members: Readonly<Record<string, object>>): object {
  const names = Object.keys(members);
  const properties = Object.fromEntries(
    names.map((name) => [name.replace(/\?$/, ''), members[name]] as const),
  );
  const required = names.filter((name) => !name.endsWith('?'));
  return { type: 'object', properties, ...(required.length === 0 ? {} : { required }) };
}

/** A page of items: `items` is the member that holds them. */
function page(items: string, schema: string): object {
  return object({ [items]: list(ref(schema)), metadata: ref('PageMetadata') });
}

/** A page of the admin API, likewise. */
function rows(items: string, schema: object): object {
  const nextCursor = { ...text, description: 'Absent on the last page, and without `limit`' };
  return object({ [items]: list(schema), 'nextCursor?': nextCursor });
}

const bundleStatus = { enum: ['ACTIVE', 'DEPRECATED', 'ARCHIVED'] };
const bundle = object({
  namespace: text,
  name: text,
  description: text,
  version: text,
  status: bundleStatus,
  'title?': text,
  'license?': text,
  'compatibility?': text,
  'allowedTools?': list(text),
  'packages?': list(object({ registryType: { enum: ['oci', 'git'] } })),
  isLatest: flag,
  createdAt: time,
  updatedAt: time,
});

/** Of readers and of everyone. Documents are open: members nobody knows pass through. */
const READ_SCHEMAS = {
  Error: object({ error: { ...text, description: 'What went wrong' } }),
  Server: object({
    '$schema?': uri,
    name: text,
    'title?': text,
    description: text,
    version: text,
    'websiteUrl?': text,
    'repository?': object({ 'url?': text, 'source?': text, 'id?': text, 'subfolder?': text }),
    'icons?': list(object({ 'src?': text })),
    'packages?': list(object({ registryType: text, identifier: text, 'version?': text })),
    'remotes?': list(object({ type: text, url: text })),
    '_meta?': object({}),
  }),
  OfficialMeta: object({
    status: { ...text, examples: ['active', 'deprecated'] },
    publishedAt: time,
    updatedAt: time,
    statusChangedAt: time,
    isLatest: flag,
  }),
  ServerItem: object({
    server: ref('Server'),
    _meta: object({ 'io.modelcontextprotocol.registry/official': ref('OfficialMeta') }),
  }),
  PageMetadata: object({
    count: { type: 'integer', description: 'Items on this page' },
    'nextCursor?': { ...text, description: 'Absent on the last page' },
  }),
  ServerList: page('servers', 'ServerItem'),
  Skill: bundle,
  SkillList: page('skills', 'Skill'),
  Plugin: bundle,
  PluginList: page('plugins', 'Plugin'),
  Caller: object({
    subject: { ...text, description: '`sub` of the token' },
    roles: list({ enum: ['superAdmin', 'manageSources', 'manageRegistries', 'manageEntries'] }),
  }),
  ResourceMetadata: object({
    resource: uri,
    authorization_servers: list(uri),
    bearer_methods_supported: list(text),
    'scopes_supported?': list(text),
  }),
  LoginDocument: object({
    resource: uri,
    registries: { ...uri, description: 'Where callers see the registries that they may see' },
    sign_in: list(
      object({
        issuer: uri,
        'client_id?': { ...text, description: 'Of a public client' },
        'scopes?': list(text),
        'audience?': text,
      }),
    ),
  }),
  Health: object({ status: { const: 'healthy' } }),
  Readiness: object({
    status: { const: 'ready' },
    'identity_providers_away?': {
      ...list(text),
      description: 'Names of identity providers that do not answer; their callers get 503',
    },
  }),
  Version: object({
    version: text,
    commit: text,
    build_date: text,
    runtime_version: text,
    go_version: { ...text, description: 'The same as runtime_version' },
    platform: text,
  }),
  OpenApi: object({ openapi: text, info: object({}), paths: object({}) }),
};

const claims = ref('Claims');
const creationType = {
  enum: ['CONFIG', 'API'],
  description: 'What comes from the configuration is read-only',
};
const entryHead = {
  entryType: { enum: ['MCP', 'SKILL', 'PLUGIN'] },
  'namespace?': { ...text, description: 'Of skills and plugins' },
  name: text,
  'claims?': claims,
};
const versionTexts = { version: text, 'title?': text, 'description?': text };
const times = { createdAt: time, updatedAt: time };

/** Of the admin API. */
const ADMIN_SCHEMAS = {
  Claims: {
    type: 'object',
    additionalProperties: { anyOf: [text, list(text)] },
    description: 'What a caller must hold; every value is a text or a list of texts',
  },
  Validation: object({
    valid: flag,
    issues: list(object({ type: text, path: text, message: text, severity: text, reference: text })),
  }),
  ChangedServers: object({ updatedCount: count, servers: list(ref('ServerItem')) }),
  Published: { anyOf: [ref('Server'), ref('PublishedBundle')] },
  Bundle: object({
    namespace: text,
    name: text,
    version: text,
    description: text,
    'status?': text,
    'title?': text,
    'license?': text,
    'packages?': list(object({})),
  }),
  PublishedBundle: {
    allOf: [
      ref('Bundle'),
      object({ id: { ...text, format: 'uuid' }, status: bundleStatus, isLatest: flag, ...times }),
    ],
  },
  SyncStatus: object({
    phase: { enum: ['syncing', 'complete', 'failed'] },
    message: text,
    'lastSyncTime?': time,
    'lastAttempt?': time,
    'lastSuccessTime?': time,
    'nextSyncTime?': time,
    'hash?': text,
    attemptCount: { ...count, description: 'Consecutive failures' },
    changed: flag,
    serverCount: count,
    skillCount: count,
    pluginCount: count,
    'skipped?': list(object({ name: text, 'version?': text, reason: text })),
  }),
  SourceInfo: object({
    name: text,
    type: text,
    creationType,
    sourceType: text,
    'format?': text,
    sourceConfig: object({}),
    'filterConfig?': object({}),
    'syncSchedule?': { ...text, examples: ['30m0s'] },
    'claims?': claims,
    'syncStatus?': ref('SyncStatus'),
    'orphaned?': { ...flag, description: 'It left the configuration file while registries list it' },
    ...times,
  }),
  SourceList: rows('sources', ref('SourceInfo')),
  SourceEntries: rows(
    'entries',
    object({ ...entryHead, versions: list(object({ ...versionTexts, ...times })) }),
  ),
  RegistryInfo: object({ name: text, 'claims?': claims, creationType, sources: list(text), ...times }),
  RegistryList: rows('registries', ref('RegistryInfo')),
  RegistryEntries: rows('entries', {
    ...object({ ...entryHead, ...versionTexts, ...times, sourceName: text, position: count }),
    // In the order that it always had, for those who compare documents as text.
    required: ['entryType', 'name', 'version', 'sourceName', 'position', 'createdAt', 'updatedAt'],
  }),
  AccessReport: object({
    mode: { enum: ['anonymous', 'auth-only', 'full'] },
    caller: ref('Caller'),
    findings: list(
      object({
        layer: { enum: ['role', 'registry', 'source', 'entry', 'publish'] },
        subject: text,
        'source?': { ...text, description: 'Of an entry: whose copy' },
        allowed: flag,
        reason: text,
        'key?': { ...text, description: 'The first claim that failed' },
        because: text,
        'remedy?': { ...text, description: 'What would change the answer' },
        'shadowedBy?': { ...text, description: 'Whose copy is served instead' },
      }),
    ),
    'arrayMatch?': {
      enum: ['all', 'any'],
      description: 'Of a publish: which of several values of one claim readers need',
    },
  }),
};

/** Components of the OpenAPI document. */
export const SCHEMAS: Readonly<Record<string, object>> = { ...READ_SCHEMAS, ...ADMIN_SCHEMAS };
