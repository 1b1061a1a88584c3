import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { findElements, findMembers, findPath, rawAt, splice } from '@skep/core/json/scan.ts';
import { readMessage, type Notification, type Request } from '../../message/json-rpc.ts';
import type { Kind, Question } from './question.ts';

/** What a client sends that is no answer. */
export type Sent = Request | Notification;

/** Methods that use something, and the parameter that names it. */
const USES: ReadonlyMap<string, { readonly kind: Kind; readonly name: string }> = new Map([
  ['tools/call', { kind: 'tool', name: 'name' }],
  ['prompts/get', { kind: 'prompt', name: 'name' }],
  ['resources/read', { kind: 'resource', name: 'uri' }],
  ['resources/subscribe', { kind: 'resource', name: 'uri' }],
  ['resources/unsubscribe', { kind: 'resource', name: 'uri' }],
]);

/** Methods whose answer is a list: where it is, and what names its items. */
export const LISTS: ReadonlyMap<string, ListShape> = new Map<string, ListShape>([
  ['tools/list', { member: 'tools', name: 'name', kind: 'tool' }],
  ['prompts/list', { member: 'prompts', name: 'name', kind: 'prompt' }],
  ['resources/list', { member: 'resources', name: 'uri', kind: 'resource' }],
  ['resources/templates/list', { member: 'resourceTemplates', name: 'uriTemplate', kind: 'resource' }],
  ['tasks/list', { member: 'tasks', name: 'taskId', kind: 'task' }],
]);

export interface ListShape {
  readonly member: string;
  readonly name: string;
  readonly kind: Kind | 'task';
}

const COMPLETE = 'completion/complete';
const LISTEN = 'subscriptions/listen';

/** Methods that are everybody's; what is in none of these tables is nobody's. */
const OPEN: ReadonlySet<string> = new Set([
  'initialize',
  'ping',
  'features/list',
  'roots/list',
  'server/discover',
  'logging/setLevel',
  'notifications/initialized',
  'notifications/progress',
  'notifications/cancelled',
  'notifications/message',
  'notifications/tasks/status',
  'notifications/roots/list_changed',
  'notifications/tools/list_changed',
  'notifications/prompts/list_changed',
  'notifications/resources/list_changed',
  'notifications/resources/updated',
]);

/** Methods about a task, which is theirs who started it. */
const OF_TASK: ReadonlySet<string> = new Set(['tasks/get', 'tasks/result', 'tasks/cancel', 'tasks/update']);

/** What a message needs before it may reach the server. */
export type Need =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'refusal' }
  | { readonly kind: 'answer'; readonly question: Question }
  | { readonly kind: 'task'; readonly taskId: string }
  /** Whoever listens hears of the resources only that it may read. */
  | { readonly kind: 'listen'; readonly uris: readonly string[] };

const NOTHING: Need = { kind: 'nothing' };
const REFUSAL: Need = { kind: 'refusal' };

/** docs/behaviour/proxy.md#authorization: which methods are decided how. */
export function needOf(message: Sent): Need {
  const { method } = message;
  if (OPEN.has(method) || LISTS.has(method)) return NOTHING;
  const use = USES.get(method);
  if (use !== undefined) return useOf(message, use);
  if (OF_TASK.has(method)) {
    const taskId = textParameter(message, 'taskId');
    return taskId === undefined ? REFUSAL : { kind: 'task', taskId };
  }
  if (method === COMPLETE) return completionOf(message);
  return method === LISTEN ? listeningOf(message) : REFUSAL;
}

/** The names as the server reads them: one that occurs twice, or in another case, is refused, and so is one that is not there. */
function useOf({ text }: Sent, { kind, name }: { readonly kind: Kind; readonly name: string }): Need {
  const params = findPath(text, ['params']);
  const members = params && findMembers(text, params.start, new Set([name, 'arguments']), 'exact');
  const span = members?.get(name);
  const id = span && parsedJson(rawAt(text, span));
  if (typeof id !== 'string' || id === '') return REFUSAL;
  const args = members?.get('arguments');
  return { kind: 'answer', question: { kind, id, args: args && rawAt(text, args) } };
}

function textParameter({ text }: Sent, name: string): string | undefined {
  const span = findPath(text, ['params', name]);
  const value = span && parsedJson(rawAt(text, span));
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function completionOf({ text }: Sent): Need {
  const span = findPath(text, ['params', 'ref']);
  if (span === undefined) return REFUSAL;
  const found = findMembers(text, span.start, new Set(['type', 'name', 'uri']), 'exact');
  const ref = found && parsedJson(rawAt(text, span));
  if (!isRecord(ref)) return REFUSAL;
  const { type, name, uri } = ref;
  if (type === 'ref/prompt' && typeof name === 'string')
    return { kind: 'answer', question: { kind: 'prompt', id: name } };
  if (type === 'ref/resource' && typeof uri === 'string')
    return { kind: 'answer', question: { kind: 'resource', id: uri } };
  return REFUSAL;
}

/** Each is decided about. */
const MAX_LISTENED = 1_000;
const LISTENED = ['params', 'notifications', 'resourceSubscriptions'];

function listeningOf({ text }: Sent): Need {
  const span = findPath(text, LISTENED);
  if (span === undefined) return isAmbiguous(text) ? REFUSAL : NOTHING;
  const raw = rawAt(text, span);
  if (findElements(raw, MAX_LISTENED + 1).length > MAX_LISTENED) return REFUSAL;
  const uris = parsedJson(raw);
  const isList = Array.isArray(uris) && uris.every((uri) => typeof uri === 'string');
  return isList ? { kind: 'listen', uris } : REFUSAL;
}

/** True where a name on the way occurs twice, so that a server may see a list that is not seen here. */
function isAmbiguous(text: string): boolean {
  return LISTENED.some((_, at) => {
    const path = LISTENED.slice(0, at + 1);
    return findPath(text, path) === undefined && findPath(text, path, 'last') !== undefined;
  });
}

/** A request to listen, to those resources alone. */
export function listeningTo(message: Sent, uris: readonly string[]): Sent | undefined {
  const span = findPath(message.text, LISTENED);
  const read = span && readMessage(splice(message.text, [{ span, text: JSON.stringify(uris) }]));
  return typeof read !== 'object' || read.kind === 'response' ? undefined : read;
}
