import type { CallEnd } from '../../call/watch-call.ts';
import { BoundedNames, type Known } from '../../call/bounded-names.ts';
import { knownBy } from '../../call/tool-counts.ts';
import type { Message } from '../../message/json-rpc.ts';
import { resourceIdOf } from '../../message/resource-id.ts';

/** Methods of MCP, of both revisions; whatever else a client writes is one label. */
const METHODS = new Set([
  'initialize',
  'ping',
  'server/discover',
  'tools/list',
  'tools/call',
  'prompts/list',
  'prompts/get',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'resources/subscribe',
  'resources/unsubscribe',
  'subscriptions/listen',
  'completion/complete',
  'logging/setLevel',
  'tasks/get',
  'tasks/result',
  'tasks/list',
  'tasks/cancel',
  'tasks/update',
  'notifications/initialized',
  'notifications/cancelled',
  'notifications/progress',
  'notifications/message',
  'notifications/roots/list_changed',
]);
const VERBS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']);
const OTHER = '_OTHER';

export const verbLabel = (verb: string | undefined): string =>
  verb !== undefined && VERBS.has(verb) ? verb : OTHER;

/** Empty for a client's answer, which has none. */
export function methodLabel(message: Message | undefined): string {
  if (message === undefined || message.kind === 'response') return '';
  return METHODS.has(message.method) ? message.method : OTHER;
}

/** What a call names that metrics are told apart by: tools and prompts. URIs and cursors are as many as clients like. */
export interface NamedThing {
  readonly kind: 'tool' | 'prompt';
  readonly name: string;
}

export function namedBy(message: Message | undefined): NamedThing | undefined {
  if (message?.kind !== 'request') return undefined;
  const { method } = message;
  const kind = method === 'tools/call' ? 'tool' : method === 'prompts/get' ? 'prompt' : undefined;
  const name = kind && resourceIdOf(message);
  return kind === undefined || name === undefined ? undefined : { kind, name };
}

/** How a call ended, in the few words of labels. */
export function knownOf({ status, answer }: CallEnd): Known {
  if (answer !== undefined) return knownBy(answer);
  return status !== undefined && status < 400 ? 'taken' : 'failed';
}

/** Names of tools and prompts as labels have them. */
export class ThingLabels {
  readonly #names = { tool: new BoundedNames(), prompt: new BoundedNames() };

  label({ kind, name }: NamedThing, known: Known): string {
    return this.#names[kind].label(name, known);
  }
}
