import { KIND_LIST } from '@skep/registry/sources/source-body.ts';
import type { CallerName } from './governed.ts';

// The refusals (docs/behaviour/registry.md#status-codes): who asks what, and the exact answer. `io.acme/linter` was
// published by `writer` with CLAIMS; the source `extra` and the registry `team` were made by a super-admin.

export const CLAIMS = { org: 'acme', team: 'platform' };
export const DATA = JSON.stringify({
  servers: [{ server: { name: 'io.acme/inline', version: '1', description: 'd' } }],
});

export type Refusal = [
  rule: string,
  as: CallerName,
  asked: string,
  status: number,
  error: string,
  body?: unknown,
];

const LINTER = { name: 'io.acme/linter', version: '1.0.0', description: 'd' };
const SERVERS = 'GET /registry/all/v0.1/servers';
const INSUFFICIENT = 'insufficient claims: caller claims do not cover resource claims';
const ROLE = 'forbidden: insufficient permissions';
const ENTRIES = 'POST /v1/entries';
const PUBLISH = 'POST /registry/all/v0.1/publish';
const KIND = "unsupported entry type: must be 'server', 'skill', or 'plugin'";
const MANY = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`k${index}`, 'v']));

// One line a row, however long: it is read as a table.
// prettier-ignore
export const REFUSALS: readonly Refusal[] = [
  // 400: paths and parameters
  ['a broken escape', 'reader', 'GET /registry/all/v0.1/servers/%zz/versions', 400, 'invalid URL encoding in path segment "%zz"'],
  ['an empty name', 'both', 'GET /v1/sources/%20', 400, 'name cannot be empty'],
  ['white space in a name', 'reader', 'GET /registry/a%20b/v0.1/servers', 400, 'registry cannot contain whitespace'],
  ['dot segments', 'reader', 'GET /registry/all/v0.1/../v0.1/servers', 400, 'the path must not contain dot segments'],
  ['encoded dot segments', 'reader', 'GET /registry/%2e%2E/v0.1/servers', 400, 'the path must not contain dot segments'],
  ['a name with two slashes, before the registry is looked up', 'reader', 'GET /registry/none/v0.1/servers/a%2Fb%2Fc/versions', 400, 'invalid server name format: the name has more than one "/"'],
  ['a limit that is no number', 'reader', `${SERVERS}?limit=x`, 400, 'Invalid limit parameter: must be an integer'],
  ['a limit of nothing', 'reader', `${SERVERS}?limit=0`, 400, 'Invalid limit parameter: must be greater than zero'],
  ['a parameter given twice', 'reader', `${SERVERS}?limit=1&limit=2`, 400, 'Invalid limit parameter: must be given once'],
  ['a date that is none', 'reader', `${SERVERS}?updated_since=2026-01-01`, 400, 'Invalid updated_since parameter: must be RFC3339 format, for example 2026-01-02T03:04:05Z'],
  ['a cursor that is none', 'reader', `${SERVERS}?cursor=***`, 400, 'invalid cursor'],
  ['a bundle limit out of range', 'reader', 'GET /registry/all/v0.1/x/dev.skep/skills?limit=101', 400, 'invalid limit parameter: must be between 1 and 100'],
  ['a status nobody knows', 'reader', 'GET /registry/all/v0.1/x/dev.skep/skills?status=lost', 400, 'invalid status parameter: must be active, deprecated or archived'],
  // 400: bodies
  ['a body that is no JSON', 'both', ENTRIES, 400, 'invalid request body: not valid JSON at line 1, column 2', '{'],
  ['an empty body', 'both', ENTRIES, 400, 'invalid request body: it is empty', ''],
  ['a body that is no object', 'both', ENTRIES, 400, 'invalid request body: expected an object', '[]'],
  ['a member twice', 'both', ENTRIES, 400, 'invalid request body: the member "claims" occurs twice in one object', '{"claims":{},"claims":{"org":"acme"}}'],
  ['a body nested too deeply', 'both', ENTRIES, 400, 'invalid request body: nested too deeply', `{"server":${'['.repeat(5000)}${']'.repeat(5000)}}`],
  ['no payload', 'both', ENTRIES, 400, "exactly one of 'server', 'skill', or 'plugin' must be provided", {}],
  ['two payloads', 'both', ENTRIES, 400, "exactly one of 'server', 'skill', or 'plugin' must be provided", { server: LINTER, skill: {} }],
  ['claims that are numbers', 'both', ENTRIES, 400, 'claim "n": value must be a string or array of strings', { server: LINTER, claims: { n: 1 } }],
  ['claims that are nested', 'both', ENTRIES, 400, 'claim "o": value must be a string or array of strings', { server: LINTER, claims: { o: { p: 'x' } } }],
  ['ten thousand claims', 'both', ENTRIES, 400, 'claims have 10000 keys, at most 64 are allowed', { server: LINTER, claims: MANY }],
  ['an entry type nobody knows', 'both', 'DELETE /v1/entries/robot/x/versions/1', 400, KIND],
  ['a source of no kind', 'both', 'PUT /v1/sources/new', 400, `invalid source configuration: one of ${KIND_LIST} configuration must be specified`, {}],
  ['a source without interval', 'both', 'PUT /v1/sources/new', 400, 'invalid source configuration: syncPolicy.interval is required for file registries', { file: { url: 'https://a.test/x.json' } }],
  ['another kind for a source', 'root', 'PUT /v1/sources/extra', 400, 'changing source type is not allowed: extra is a file source, not managed', { managed: {} }],
  ['a registry of no source', 'both', 'PUT /v1/registries/new', 400, 'invalid registry configuration: at least one source is required', { sources: [] }],
  ['a source twice', 'both', 'PUT /v1/registries/new', 400, 'invalid registry configuration: duplicate source: catalog', { sources: ['catalog', 'catalog'] }],
  ['a registry of an unknown source', 'both', 'PUT /v1/registries/new', 400, 'source not found: absent', { sources: ['absent'] }],
  ['a reserved word as registry', 'both', 'PUT /v1/registries/metrics', 400, 'invalid registry name: metrics is a reserved word', { sources: ['catalog'] }],
  ['a managed source to synchronise', 'both', 'POST /v1/sources/internal/sync', 400, 'source internal is not synchronised (type: managed)'],
  // 401
  ['no token', 'nobody', SERVERS, 401, 'missing or malformed authorization header'],
  ['no token on a path nobody knows', 'nobody', 'GET /nothing', 401, 'missing or malformed authorization header'],
  ['no token and an internal path', 'nobody', 'GET /metrics', 401, 'missing or malformed authorization header'],
  // 403
  ['a role that is missing, before the body', 'reader', ENTRIES, 403, ROLE, '{'],
  ['a role that is missing, before existence', 'writer', 'DELETE /v1/sources/absent', 403, ROLE],
  ['the gate of a registry', 'reader', 'GET /registry/gated/v0.1/servers', 403, 'forbidden: insufficient claims for registry'],
  ['claims that the caller lacks', 'both', ENTRIES, 403, INSUFFICIENT, { server: LINTER, claims: { team: 'finance' } }],
  ['an entry whose claims the caller lacks', 'outsider', 'DELETE /v1/entries/server/io.acme%2Flinter/versions/1.0.0', 403, INSUFFICIENT],
  ['a source of the configuration file', 'root', 'DELETE /v1/sources/catalog', 403, 'cannot delete config-created source via API: catalog'],
  ['a registry of the configuration file', 'root', 'PUT /v1/registries/all', 403, 'cannot modify config-created registry via API: all', { sources: ['catalog'] }],
  ['a registry of a source that the caller may not use', 'outsider', 'PUT /v1/registries/new', 403, 'insufficient claims: cannot reference source catalog', { sources: ['catalog'] }],
  // 404
  ['an unknown registry', 'reader', 'GET /none/v0.1/servers', 404, 'registry not found'],
  ['an unknown version', 'reader', 'GET /all/v0.1/servers/io.acme%2Fweather/versions/9', 404, 'not found'],
  ['an unknown source', 'both', 'GET /v1/sources/absent', 404, 'source not found: absent'],
  ['an unknown registry for admins', 'reader', 'GET /v1/registries/absent', 404, 'registry not found: absent'],
  ['a registry that is hidden', 'reader', 'GET /v1/registries/gated', 404, 'registry not found: gated'],
  ['an unknown entry', 'both', 'GET /v1/entries/server/a%2Fb/claims', 404, 'not found'],
  ['an endpoint nobody knows', 'reader', 'GET /all/v0.2/servers', 404, 'no such endpoint'],
  ['an internal endpoint', 'root', 'GET /metrics', 404, 'no such endpoint'],
  // 405
  ['another method', 'reader', 'PATCH /v1/me', 405, 'method not allowed'],
  // 409
  ['a version that exists', 'writer', ENTRIES, 409, 'version already exists: io.acme/linter@1.0.0', { server: LINTER, claims: CLAIMS }],
  ['other claims than those of the first version', 'writer', PUBLISH, 409, 'claims mismatch: claims do not match existing entry', { ...LINTER, version: '2.0.0', claims: { org: 'acme' } }],
  ['a second managed source', 'both', 'PUT /v1/sources/new', 409, 'at most one managed source is allowed', { managed: {} }],
  ['a source that registries list', 'root', 'DELETE /v1/sources/extra', 409, 'source is referenced by one or more registries: extra is referenced by 1 registry(ies)'],
  ['a registry without managed source', 'writer', 'POST /team/v0.1/publish', 409, 'registry "team" has no managed source', { ...LINTER, claims: CLAIMS }],
  // 413
  ['a body that is too large', 'both', ENTRIES, 413, 'request body too large', ' '.repeat(1024 * 1024 + 1)],
];
