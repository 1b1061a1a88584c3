import { setImmediate as nextTurn } from 'node:timers/promises';
import type { CedarEngine } from './cedar-engine.ts';

/** After so many decisions they take half as long as the first: what they need most has been compiled by then. */
const DECISIONS = 1_000;
/** Some milliseconds of decisions in one go; whoever calls meanwhile wants its turn. */
const IN_ONE_GO = 10;
const POLICIES = {
  staticPolicies: {
    scope: 'permit(principal in Group::"a", action == Action::"b", resource == Tool::"0");',
    record: 'permit(principal, action, resource) when { context has c && context.c == "c" };',
    text: 'permit(principal, action, resource) when { resource.name like "*1" && !resource.hint };',
    set: 'forbid(principal, action, resource) when { principal.claim.contains("d") };',
  },
};

type Engine = Pick<CedarEngine, 'preparsePolicySet' | 'statefulIsAuthorized'>;

let isWarm = false;

/**
 * Has Cedar compiled before anybody waits for its decisions, while a server starts: the first list of hundreds of tools needs
 * hundreds of them. Once for the process, in turns with all other work; ends with `signal`.
 */
export async function warmUp(cedar: Engine, signal: AbortSignal): Promise<void> {
  if (isWarm) return;
  isWarm = true;
  cedar.preparsePolicySet('warm-up', POLICIES);
  for (let count = 0; count < DECISIONS && !signal.aborted; count += 1) {
    if (count % IN_ONE_GO === 0) await nextTurn();
    decide(cedar, count);
  }
  isWarm = !signal.aborted;
}

function decide(cedar: Engine, count: number): void {
  const principal = { type: 'Client', id: 'a' };
  const action = { type: 'Action', id: 'b' };
  const resource = { type: 'Tool', id: `${count}` };
  const parents = [{ type: 'Group', id: 'a' }];
  cedar.statefulIsAuthorized({
    principal,
    action,
    resource,
    context: { c: 'c' },
    entities: [
      { uid: principal, attrs: { claim: ['c', 'd'] }, parents },
      { uid: action, attrs: {}, parents: [] },
      { uid: resource, attrs: { name: `tool_${count}`, hint: count % 2 === 0 }, parents },
    ],
    preparsedPolicySetId: 'warm-up',
    validateRequest: false,
  });
}
