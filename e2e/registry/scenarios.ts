import type { CallerName } from './governed.ts';

// For every operation and status of the OpenAPI document a request that provokes it.

export interface Step {
  /** Which of the programs is asked; `governed` unless said. */
  readonly of?: 'governed' | 'anonymous' | 'restless' | 'cut-off' | 'unmanaged';
  readonly as?: CallerName;
  /** Values of path parameters that differ from DEFAULTS. `{fresh}` is a name that no other step has. */
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

export interface Scenario extends Step {
  /** What has to be done before, as a super-admin: `METHOD target` and a body. */
  readonly after?: readonly (readonly [asked: string, body?: unknown])[];
}

type Scenarios = Readonly<Record<string, Readonly<Record<number, Scenario>>>>;

/** Of path parameters, where a step does not say otherwise. */
export const DEFAULTS: Readonly<Record<string, string>> = {
  registry: 'all',
  serverName: 'io.acme%2Fweather',
  namespace: 'io.acme',
  version: '1.0.0',
  type: 'server',
};

const DATA = JSON.stringify({ servers: [{ server: { name: 'a/b', version: '1', description: 'd' } }] });
const INLINE = { file: { data: DATA } };
const entry = (version = '1.0.0') => ({ name: 'io.acme/{fresh}', version, description: 'Made for one step' });
const claims = { org: 'acme' };
const PUBLISH = ['POST /v1/entries', { server: entry(), claims }] as const;
const skill = (namespace: string) => ({ namespace, name: '{fresh}', version: '1.0.0', description: 'd' });
/** Two skills of one bare name. */
const TWINS = ['io.one', 'io.two'].map((one) => ['POST /v1/entries', { skill: skill(one) }] as const);
const SOURCE = ['PUT /v1/sources/{fresh}', INLINE] as const;
const REGISTRY = ['PUT /v1/registries/{fresh}', { sources: ['internal'] }] as const;

const FRESH = { path: { name: '{fresh}' } };
const ABSENT = { path: { name: 'absent' } };
const BROKEN_NAME = { path: { name: 'a%20b' } };
/** For the forms of a path that do not hold it. */
const VERSION = { query: 'version=1.0.0' };
const NO_REGISTRY = { path: { registry: 'none' } };
const GATED = { as: 'reader', path: { registry: 'gated' } } as const;

/** Endpoints below a registry: who may not pass its gate, what does not exist, what is no name. */
const reads = (rest: Readonly<Record<number, Scenario>>): Readonly<Record<number, Scenario>> => ({
  200: {},
  400: { path: { registry: '%20' } },
  403: GATED,
  404: NO_REGISTRY,
  ...rest,
});

const bundles = (kind: 'Skill' | 'Plugin', name: string): Scenarios => {
  const path = { name };
  const unknown = { path: { name: 'absent' } };
  return {
    [`list${kind}s`]: reads({ 400: { query: 'limit=101' } }),
    [`getLatest${kind}`]: reads({ 200: { path }, 404: unknown }),
    [`list${kind}Versions`]: reads({ 200: { path }, 400: { path, query: 'cursor=*' } }),
    [`get${kind}Version`]: reads({ 200: { path }, 404: { path: { ...path, version: '9' } } }),
  };
};

/** What the official publisher sends; its claims stand in the publisher's own block. */
const official = (more: object = {}) => ({
  ...entry(),
  _meta: { 'io.modelcontextprotocol.registry/publisher-provided': { 'dev.skep': { claims } } },
  ...more,
});
const MADE = { after: [PUBLISH], path: { serverName: 'io.acme%2F{fresh}' } } as const;
const NONE = { path: { serverName: 'io.acme%2Fabsent' } };
const statusChanges = (root: boolean): Readonly<Record<number, Scenario>> => ({
  200: { ...MADE, as: 'both', body: { status: 'deprecated', statusMessage: 'use another' } },
  400: { ...MADE, body: { status: 'gone' } },
  403: { ...MADE, as: 'outsider', body: { status: 'active' } },
  404: { ...(root ? NONE : NO_REGISTRY), body: { status: 'active' } },
});
const officialDoor = (suffix: '' | 'AtRoot'): Scenarios => ({
  [`publishOfficial${suffix}`]: {
    200: { as: 'both', body: official() },
    400: { body: official({ version: 'latest' }) },
    403: { as: 'outsider', body: official() },
    404: { of: 'unmanaged', body: official() },
    409: { after: [PUBLISH], body: official() },
  },
  [`validateOfficial${suffix}`]: {
    200: { body: official() },
    ...(suffix === ''
      ? { 400: { path: { registry: '%20' }, body: official() }, 404: { ...NO_REGISTRY, body: official() } }
      : {}),
  },
  [`changeVersionStatus${suffix}`]: statusChanges(suffix === 'AtRoot'),
  [`changeServerStatus${suffix}`]: statusChanges(suffix === 'AtRoot'),
});

export const SCENARIOS: Scenarios = {
  ...officialDoor(''),
  ...officialDoor('AtRoot'),
  listServers: reads({ 400: { query: 'updated_since=yesterday' } }),
  listServerVersions: reads({ 400: { path: { serverName: '-' } } }),
  getServerVersion: reads({ 404: { path: { serverName: 'io.acme%2Fabsent' } } }),
  ...bundles('Skill', 'triage'),
  ...bundles('Plugin', 'linter'),
  getCaller: { 200: { as: 'reader' }, 401: { of: 'anonymous' } },
  openApi: { 200: { as: 'nobody' } },
  getResourceMetadata: { 200: { as: 'nobody' }, 404: { of: 'anonymous' } },
  getRegistryMetadata: {
    200: { as: 'nobody' },
    400: { path: { registry: '%20' } },
    404: { of: 'anonymous' },
  },
  getResourceLogin: { 200: { as: 'nobody' }, 404: { of: 'anonymous' } },
  getRegistryLogin: {
    200: { as: 'nobody' },
    400: { path: { registry: '%20' } },
    404: { of: 'anonymous' },
  },
  publishToRegistry: {
    201: { as: 'both', body: { ...entry(), url: 'https://a.test/mcp', claims } },
    400: { body: { ...entry('latest') } },
    403: { ...GATED, as: 'both', body: entry() },
    404: { ...NO_REGISTRY, body: entry() },
    409: { after: [PUBLISH], body: { ...entry(), claims } },
  },
  deleteServerVersion: {
    204: { after: [PUBLISH], as: 'both', path: { serverName: 'io.acme%2F{fresh}' }, ...VERSION },
    400: { path: { serverName: 'a%2Fb%2Fc' } },
    403: { ...GATED, as: 'both', ...VERSION },
    404: { path: { serverName: 'io.acme%2Fabsent' }, ...VERSION },
  },
  publishEntry: {
    201: { as: 'both', body: { skill: skill('io.acme'), claims } },
    400: { body: { server: entry(), skill: skill('io.acme') } },
    403: { as: 'both', body: { server: entry(), claims: { org: 'other' } } },
    409: { after: [PUBLISH], body: { server: entry('2.0.0') } },
  },
  deleteEntryVersion: {
    204: { after: [PUBLISH], as: 'both', path: { name: 'io.acme%2F{fresh}' }, ...VERSION },
    400: { path: { type: 'robot', name: 'x' } },
    403: { after: [PUBLISH], as: 'outsider', path: { name: 'io.acme%2F{fresh}' }, ...VERSION },
    404: { ...ABSENT, ...VERSION },
    409: { after: TWINS, path: { type: 'skill', name: '{fresh}' }, ...VERSION },
  },
  getEntryClaims: {
    200: { after: [PUBLISH], as: 'both', path: { name: 'io.acme%2F{fresh}' } },
    400: BROKEN_NAME,
    403: { after: [PUBLISH], as: 'outsider', path: { name: 'io.acme%2F{fresh}' } },
    404: ABSENT,
    409: { after: TWINS, path: { type: 'skill', name: '{fresh}' } },
  },
  putEntryClaims: {
    204: {
      after: [PUBLISH],
      as: 'both',
      path: { name: 'io.acme%2F{fresh}' },
      body: { claims: { org: ['acme'] } },
    },
    400: { path: { name: 'x' }, body: { claims: { org: 5 } } },
    403: {
      after: [PUBLISH],
      as: 'both',
      path: { name: 'io.acme%2F{fresh}' },
      body: { claims: { org: 'other' } },
    },
    404: { ...ABSENT, body: {} },
    409: { after: TWINS, path: { type: 'skill', name: '{fresh}' }, body: {} },
  },
  listSources: { 200: { as: 'both' }, 400: { query: 'limit=0' } },
  getSource: { 200: { path: { name: 'catalog' } }, 400: BROKEN_NAME, 404: ABSENT },
  listSourceEntries: { 200: { path: { name: 'catalog' } }, 400: BROKEN_NAME, 404: ABSENT },
  putSource: {
    200: { ...FRESH, after: [SOURCE], body: { ...INLINE, claims } },
    201: { ...FRESH, as: 'both', body: { ...INLINE, claims, filter: { names: { include: ['a/*'] } } } },
    400: { ...FRESH, body: {} },
    403: { path: { name: 'catalog' }, body: INLINE },
    409: { ...FRESH, body: { managed: {} } },
  },
  deleteSource: {
    204: { ...FRESH, after: [SOURCE] },
    400: BROKEN_NAME,
    403: { path: { name: 'catalog' } },
    404: ABSENT,
    409: { ...FRESH, after: [SOURCE, ['PUT /v1/registries/{fresh}', { sources: ['{fresh}'] }]] },
  },
  startSync: { 202: { ...FRESH, after: [SOURCE] }, 400: { path: { name: 'internal' } }, 404: ABSENT },
  getSync: { 200: { path: { name: 'catalog' } }, 400: BROKEN_NAME, 404: ABSENT },
  listRegistries: { 200: { as: 'reader' }, 400: { query: 'cursor=*' } },
  getRegistry: {
    200: { path: { name: 'all' } },
    400: BROKEN_NAME,
    404: { path: { name: 'gated' }, as: 'reader' },
  },
  listRegistryEntries: { 200: { path: { name: 'all' } }, 400: BROKEN_NAME, 404: ABSENT },
  putRegistry: {
    200: { ...FRESH, after: [REGISTRY], body: { sources: ['internal'], claims } },
    201: { ...FRESH, as: 'both', body: { sources: ['internal', 'catalog'], claims } },
    400: { ...FRESH, body: { sources: ['absent'] } },
    403: { path: { name: 'all' }, body: { sources: ['internal'] } },
  },
  deleteRegistry: {
    204: { ...FRESH, after: [REGISTRY] },
    400: BROKEN_NAME,
    403: { path: { name: 'all' } },
    404: ABSENT,
  },
  explainAccess: {
    200: { query: 'registry=all&entry=io.acme%2Fweather&claims=%7B%7D' },
    400: { query: 'claims=5' },
    403: { as: 'reader', query: 'claims=%7B%7D' },
    404: { query: 'registry=absent' },
  },
  explainPublish: {
    200: { as: 'reader', body: { server: entry(), claims } },
    400: { body: {} },
    404: { query: 'registry=absent', body: { server: entry(), claims } },
  },
};
