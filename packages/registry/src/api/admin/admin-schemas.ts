import { list, object, ref, text, time } from '../route/json-schema.ts';

const claims = ref('Claims');
const count = { type: 'integer', minimum: 0 };
const nextCursor = { ...text, description: 'Absent on the last page, and without `limit`' };
const creationType = {
  enum: ['CONFIG', 'API'],
  description: 'What comes from the configuration is read-only',
};
const entryType = { enum: ['MCP', 'SKILL', 'PLUGIN'] };

const versionHead = { version: text, title: text, description: text, createdAt: time, updatedAt: time };
const entryHead = {
  entryType,
  namespace: { ...text, description: 'Of skills and plugins' },
  name: text,
  claims,
};

/** Components of the admin API. */
export const ADMIN_SCHEMAS: Readonly<Record<string, object>> = {
  Claims: {
    type: 'object',
    additionalProperties: { anyOf: [text, list(text)] },
    description: 'What a caller must hold; every value is a text or a list of texts',
  },
  Validation: object({
    valid: { type: 'boolean' },
    issues: list(object({ type: text, path: text, message: text, severity: text, reference: text })),
  }),
  ChangedServers: object({ updatedCount: count, servers: list(ref('ServerItem')) }),
  Published: { anyOf: [ref('Server'), ref('PublishedBundle')] },
  Bundle: object(
    {
      namespace: text,
      name: text,
      version: text,
      description: text,
      status: text,
      title: text,
      license: text,
      packages: list(object({}, [])),
    },
    ['namespace', 'name', 'version', 'description'],
  ),
  PublishedBundle: {
    allOf: [
      ref('Bundle'),
      object({
        id: { ...text, format: 'uuid' },
        status: { enum: ['ACTIVE', 'DEPRECATED', 'ARCHIVED'] },
        isLatest: { type: 'boolean' },
        createdAt: time,
        updatedAt: time,
      }),
    ],
  },
  SyncStatus: object(
    {
      phase: { enum: ['syncing', 'complete', 'failed'] },
      message: text,
      lastSyncTime: time,
      lastAttempt: time,
      lastSuccessTime: time,
      nextSyncTime: time,
      hash: text,
      attemptCount: { ...count, description: 'Consecutive failures' },
      changed: { type: 'boolean' },
      serverCount: count,
      skillCount: count,
      pluginCount: count,
      skipped: list(object({ name: text, version: text, reason: text }, ['name', 'reason'])),
    },
    ['phase', 'message', 'attemptCount', 'changed', 'serverCount', 'skillCount', 'pluginCount'],
  ),
  SourceInfo: object(
    {
      name: text,
      type: text,
      creationType,
      sourceType: text,
      format: text,
      sourceConfig: object({}, []),
      filterConfig: object({}, []),
      syncSchedule: { ...text, examples: ['30m0s'] },
      claims,
      syncStatus: ref('SyncStatus'),
      orphaned: { type: 'boolean', description: 'It left the configuration file while registries list it' },
      createdAt: time,
      updatedAt: time,
    },
    ['name', 'type', 'creationType', 'sourceType', 'sourceConfig', 'createdAt', 'updatedAt'],
  ),
  SourceList: object({ sources: list(ref('SourceInfo')), nextCursor }, ['sources']),
  SourceEntries: object(
    {
      entries: list(
        object({ ...entryHead, versions: list(object(versionHead, ['version', 'createdAt', 'updatedAt'])) }, [
          'entryType',
          'name',
          'versions',
        ]),
      ),
      nextCursor,
    },
    ['entries'],
  ),
  RegistryInfo: object(
    { name: text, claims, creationType, sources: list(text), createdAt: time, updatedAt: time },
    ['name', 'creationType', 'sources', 'createdAt', 'updatedAt'],
  ),
  RegistryList: object({ registries: list(ref('RegistryInfo')), nextCursor }, ['registries']),
  RegistryEntries: object(
    {
      entries: list(
        object({ ...entryHead, ...versionHead, sourceName: text, position: count }, [
          'entryType',
          'name',
          'version',
          'sourceName',
          'position',
          'createdAt',
          'updatedAt',
        ]),
      ),
      nextCursor,
    },
    ['entries'],
  ),
  AccessReport: object({
    mode: { enum: ['anonymous', 'auth-only', 'full'] },
    caller: ref('Caller'),
    findings: list(
      object(
        {
          layer: { enum: ['role', 'registry', 'source', 'entry'] },
          subject: text,
          source: { ...text, description: 'Of an entry: whose copy' },
          allowed: { type: 'boolean' },
          reason: text,
          key: { ...text, description: 'The first claim that failed' },
          because: text,
          remedy: { ...text, description: 'What would change the answer' },
          shadowedBy: { ...text, description: 'Whose copy is served instead' },
        },
        ['layer', 'subject', 'allowed', 'reason', 'because'],
      ),
    ),
  }),
};
