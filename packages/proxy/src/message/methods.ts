/** Methods that the proxy treats in a way of its own. Everything else is carried through by kind alone. */
export const METHODS = {
  initialize: 'initialize',
  initialized: 'notifications/initialized',
  ping: 'ping',
  cancelled: 'notifications/cancelled',
  progress: 'notifications/progress',
  toolsChanged: 'notifications/tools/list_changed',
  logMessage: 'notifications/message',
  setLogLevel: 'logging/setLevel',
  subscribe: 'resources/subscribe',
  unsubscribe: 'resources/unsubscribe',
  resourceUpdated: 'notifications/resources/updated',
  taskStatus: 'notifications/tasks/status',
  listRoots: 'roots/list',
  sample: 'sampling/createMessage',
  elicit: 'elicitation/create',
  elicitationComplete: 'notifications/elicitation/complete',
  discover: 'server/discover',
  listen: 'subscriptions/listen',
  listening: 'notifications/subscriptions/acknowledged',
  readResource: 'resources/read',
} as const;

/** Notifications that concern every client alike. */
export const LIST_CHANGED: ReadonlySet<string> = new Set([
  METHODS.toolsChanged,
  'notifications/prompts/list_changed',
  'notifications/resources/list_changed',
]);

/** What a server may ask a client (MCP 2025-11-25, client features). */
export const CLIENT_REQUESTS: ReadonlySet<string> = new Set([
  METHODS.sample,
  METHODS.elicit,
  METHODS.listRoots,
]);

/** Requests whose effect is remembered per session, so that they mean nothing without one. */
export const SESSION_REQUESTS: ReadonlySet<string> = new Set([
  METHODS.setLogLevel,
  METHODS.subscribe,
  METHODS.unsubscribe,
]);

/** Where a modern client must repeat a parameter in the `Mcp-Name` header (MCP 2026-07-28, Streamable HTTP). */
export const NAMED_PARAMETER: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'name'],
  [METHODS.readResource, 'uri'],
  ['prompts/get', 'name'],
]);

/** Requests of legacy revisions that MCP 2026-07-28 took away. */
export const REMOVED: ReadonlySet<string> = new Set([
  METHODS.initialize,
  METHODS.ping,
  METHODS.setLogLevel,
  METHODS.subscribe,
  METHODS.unsubscribe,
]);

/** What `subscriptions/listen` asks for by name (MCP 2026-07-28), and the notification that it means. */
export const LISTEN_FILTERS: ReadonlyMap<string, { readonly capability: string; readonly method: string }> =
  new Map([
    ['toolsListChanged', { capability: 'tools', method: 'notifications/tools/list_changed' }],
    ['promptsListChanged', { capability: 'prompts', method: 'notifications/prompts/list_changed' }],
    ['resourcesListChanged', { capability: 'resources', method: 'notifications/resources/list_changed' }],
  ]);

/** Results that say how long they may be kept (MCP 2026-07-28, caching). */
export const CACHEABLE: ReadonlySet<string> = new Set([
  METHODS.discover,
  METHODS.readResource,
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
]);
