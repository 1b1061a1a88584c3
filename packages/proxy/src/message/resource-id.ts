import { memberAt, type Message } from './json-rpc.ts';

/** Where a message of a method names what it is about, below `params`. */
const PLACES: ReadonlyMap<string, readonly (readonly string[])[]> = new Map<
  string,
  readonly (readonly string[])[]
>([
  ['initialize', [['clientInfo', 'name']]],
  ['tools/call', [['name']]],
  ['prompts/get', [['name']]],
  ['resources/read', [['uri']]],
  ['resources/subscribe', [['uri']]],
  ['resources/unsubscribe', [['uri']]],
  ['logging/setLevel', [['level']]],
  [
    'completion/complete',
    [
      ['ref', 'name'],
      ['ref', 'uri'],
    ],
  ],
  ['notifications/progress', [['progressToken']]],
  ['notifications/cancelled', [['requestId']]],
  ...['tools', 'prompts', 'resources', 'resources/templates', 'tasks'].map(
    (what) => [`${what}/list`, [['cursor']]] as const,
  ),
  ...['get', 'result', 'cancel', 'update'].map((what) => [`tasks/${what}`, [['taskId']]] as const),
]);
/** What is about one thing alone. */
const FIXED: ReadonlyMap<string, string> = new Map([
  ['ping', 'ping'],
  ['server/discover', 'discover'],
  ['notifications/initialized', 'initialized'],
  ...['tools', 'prompts', 'resources', 'roots'].map(
    (what) => [`notifications/${what}/list_changed`, what] as const,
  ),
]);

/**
 * What a message is about: a tool's or prompt's name, a resource's URI, the place in a list, a level; undefined where it names
 * nothing.
 */
export function resourceIdOf(message: Message): string | undefined {
  if (message.kind === 'response') return undefined;
  for (const place of PLACES.get(message.method) ?? []) {
    const value = memberAt(message.value, ['params', ...place]);
    if (typeof value === 'string' || typeof value === 'number') return String(value);
  }
  return FIXED.get(message.method);
}
