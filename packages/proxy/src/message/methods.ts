/** Methods that the proxy treats in a way of its own. Everything else is carried through by kind alone. */
export const METHODS = {
  initialize: 'initialize',
  initialized: 'notifications/initialized',
  ping: 'ping',
  cancelled: 'notifications/cancelled',
  progress: 'notifications/progress',
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
} as const;

/** Notifications that concern every client alike. */
export const LIST_CHANGED: ReadonlySet<string> = new Set([
  'notifications/tools/list_changed',
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
  ['resources/read', 'uri'],
  ['prompts/get', 'name'],
]);
