import { isRecord } from '@skep/core/json/is-record.ts';
import { findMembers, findPath, isLookalike } from '@skep/core/json/scan.ts';
import { META } from './envelope.ts';
import { member, type Message } from './json-rpc.ts';
import { OUTLINED_FROM } from './outline.ts';

/** What is read of the parameters of clients, here or by a server that does as it was allowed. */
const PARAMS = new Set([
  'name',
  'uri',
  'arguments',
  'ref',
  'cursor',
  '_meta',
  'requestState',
  'inputResponses',
  'notifications',
  'requestId',
  'progressToken',
  'protocolVersion',
  'capabilities',
  'clientInfo',
  'level',
  'task',
  'taskId',
]);
/** And of what lies in some of them. */
const WITHIN: readonly (readonly [string, ReadonlySet<string>])[] = [
  ['_meta', new Set(['progressToken', ...Object.values(META)])],
  ['ref', new Set(['type', 'name', 'uri'])],
  ['notifications', new Set(['resourceSubscriptions'])],
];

/**
 * True where a client's parameters have a member that a server may take for another one than the proxy does, as some heed no
 * case: what was decided about `name` would not be what happens to `Name`.
 */
export function hasLookalikes({ kind, text, value }: Message): boolean {
  if (kind === 'response') return false;
  if (text.length >= OUTLINED_FROM) return hasInText(text);
  const params = member(value, 'params');
  return hasIn(params, PARAMS) || WITHIN.some(([name, names]) => hasIn(member(params, name), names));
}

function hasIn(value: unknown, names: ReadonlySet<string>): boolean {
  return isRecord(value) && Object.keys(value).some((name) => isLookalike(name, names));
}

/** Of a large message the value is an outline, which holds none. */
function hasInText(text: string): boolean {
  const params = findPath(text, ['params']);
  const members = params && findMembers(text, params.start, PARAMS, 'exact');
  if (params === undefined || members === undefined) return params !== undefined;
  return WITHIN.some(([name, names]) => {
    const span = members.get(name);
    return span !== undefined && findMembers(text, span.start, names, 'exact') === undefined;
  });
}
