import { runPlans, type RunPlan } from '@skep/core/catalog/run-plan.ts';
import type { Requirement } from '@skep/core/catalog/run-plan/requirement.ts';
import type { ServerDocument } from '@skep/core/catalog/server-json.ts';
import { hasCode } from '@skep/core/errors/skep-error.ts';
import type { Answer } from '../runtime/environment.ts';
import type { Abilities, Form } from '../runtime/glance.ts';

/** What to expect of running a server on this machine. */
export interface Outlook {
  readonly here: Answer;
  /** A phrase; there where `here` is not yes. */
  readonly why?: string;
  /** The way it would be run; absent where nobody could run it. */
  readonly plan?: RunPlan;
}

const MISSING: Readonly<Record<Exclude<Form, 'remote'>, string>> = {
  image: 'it needs a container engine',
  pypi: 'it needs a container engine, or the sandbox and python3',
  npm: 'it needs a container engine or the sandbox',
};

/** Decided as `choosePlan` does, for a machine of which not everything is known. Never fails. */
export function outlookOf(document: ServerDocument, abilities: Abilities): Outlook {
  let plans: readonly RunPlan[];
  try {
    plans = runPlans(document);
  } catch (error) {
    if (!hasCode(error, 'catalog/unusable-server') && !hasCode(error, 'catalog/invalid-extension'))
      throw error;
    return { here: 'no', why: error.message };
  }
  const [best] = plans;
  const withoutImages = plans.find(({ target }) => target.kind !== 'image') ?? best;
  if (abilities.image !== 'unknown')
    return judge(abilities.image === 'yes' ? best : withoutImages, abilities);
  const [one, other] = [judge(best, abilities), judge(withoutImages, abilities)];
  return one.here === other.here ? one : { ...one, here: 'unknown', why: 'no container engine was asked' };
}

function judge(plan: RunPlan | undefined, abilities: Abilities): Outlook {
  if (plan === undefined) return { here: 'no' };
  const form = formOf(plan);
  const here = abilities[form];
  // What runs elsewhere needs nothing here.
  if (here === 'yes' || form === 'remote') return { here: 'yes', plan };
  return { here, why: here === 'no' ? MISSING[form] : 'whether the runtime works here was not tried', plan };
}

export function formOf({ target }: RunPlan): Form {
  return target.kind === 'package' ? target.ecosystem : target.kind;
}

/** The values that a person has to give, since the entry has none. */
export function valuesNeeded(plan: RunPlan | undefined): readonly Requirement[] {
  if (plan === undefined) return [];
  const others = 'urlVariables' in plan ? [...plan.urlVariables, ...plan.headers] : plan.missingArgs;
  return [...plan.env, ...others].filter((one) => one.required && one.default === undefined);
}
