import { isRecord } from '@skep/core/json/is-record.ts';
import { member, memberAt, type JsonObject, type Request, type RpcFailure } from './json-rpc.ts';
import { METHODS } from './methods.ts';

const ABILITIES = ['roots', 'sampling', 'sampling.tools', 'elicitation.form', 'elicitation.url'] as const;

/** What one client said it can be asked (MCP 2025-11-25, client features). */
export type Ability = (typeof ABILITIES)[number];

export function isAbility(text: unknown): text is Ability {
  return ABILITIES.some((ability) => ability === text);
}

/**
 * What the server hears of all its clients together: everything whose requests the proxy can carry to one of them.
 * Tasks of clients are not in it, because `tasks/get` of a server would find no way back.
 */
export const CARRIED_CAPABILITIES: JsonObject = {
  roots: { listChanged: true },
  sampling: { tools: {}, context: {} },
  elicitation: { form: {}, url: {} },
};

/** Reads the `initialize` request of a client. */
export function abilitiesOf(initialize: Request): ReadonlySet<Ability> {
  return abilitiesIn(memberAt(initialize.value, ['params', 'capabilities']));
}

/** What a client's capabilities come to. An empty `elicitation` means forms, as before there were two modes. */
export function abilitiesIn(declared: unknown): ReadonlySet<Ability> {
  const has = (...path: readonly string[]): boolean => isRecord(memberAt(declared, path));
  const abilities = new Set<Ability>();
  if (has('roots')) abilities.add('roots');
  if (has('sampling')) abilities.add('sampling');
  if (has('sampling', 'tools')) abilities.add('sampling.tools');
  if (has('elicitation', 'url')) abilities.add('elicitation.url');
  if (has('elicitation', 'form') || (has('elicitation') && !has('elicitation', 'url')))
    abilities.add('elicitation.form');
  return abilities;
}

/** The other way round: capabilities that come to `abilities`. */
export function capabilitiesFor(abilities: ReadonlySet<Ability>): JsonObject {
  const has = (ability: Ability): object =>
    abilities.has(ability) ? { [ability.split('.')[1] ?? '']: {} } : {};
  const asks = abilities.has('elicitation.form') || abilities.has('elicitation.url');
  return {
    ...(abilities.has('roots') && { roots: {} }),
    ...(abilities.has('sampling') && { sampling: has('sampling.tools') }),
    ...(asks && { elicitation: { ...has('elicitation.form'), ...has('elicitation.url') } }),
  };
}

const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;

/**
 * The error that a client with `abilities` owes the server for `request`; undefined when it can be asked. The codes are
 * those that MCP 2025-11-25 names per feature.
 */
export function refusalOf(request: Request, abilities: ReadonlySet<Ability>): RpcFailure | undefined {
  const params = member(request.value, 'params');
  const unless = (ability: Ability, code: number): RpcFailure | undefined =>
    abilities.has(ability)
      ? undefined
      : { code, message: `the client of this session did not declare ${ability}` };
  if (request.method === METHODS.listRoots) return unless('roots', METHOD_NOT_FOUND);
  if (request.method === METHODS.sample) {
    const usesTools = member(params, 'tools') !== undefined || member(params, 'toolChoice') !== undefined;
    return (
      unless('sampling', METHOD_NOT_FOUND) ??
      (usesTools ? unless('sampling.tools', INVALID_PARAMS) : undefined)
    );
  }
  if (request.method !== METHODS.elicit) return undefined;
  const mode = member(params, 'mode') === 'url' ? 'elicitation.url' : 'elicitation.form';
  const asksAtAll = abilities.has('elicitation.form') || abilities.has('elicitation.url');
  return unless(mode, asksAtAll ? INVALID_PARAMS : METHOD_NOT_FOUND);
}
