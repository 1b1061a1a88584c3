import { memberAt, type Message } from './json-rpc.ts';

/** Where a message of a method names what it is about, below `params`. */
const PLACES: ReadonlyMap<string, readonly (readonly string[])[]> = new Map([
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
]);

/** What a message is about: a tool's or prompt's name, a resource's URI, a level; undefined where it names nothing. */
export function resourceIdOf(message: Message): string | undefined {
  const places = message.kind === 'response' ? undefined : PLACES.get(message.method);
  for (const place of places ?? []) {
    const value = memberAt(message.value, ['params', ...place]);
    if (typeof value === 'string' || typeof value === 'number') return String(value);
  }
  return undefined;
}
