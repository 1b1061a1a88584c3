import type { ServerArgument } from '../server-json.ts';
import { requirementOf, type Requirement } from './requirement.ts';

/** The command line of a server: what is known, and the required arguments that have no value yet. */
export interface PlannedArguments {
  readonly args: readonly string[];
  /** Flags and positional arguments to be given by the person who runs the server. */
  readonly missing: readonly Requirement[];
}

/** Label of an argument for people: the flag, or what a positional argument stands for. */
function labelOf(argument: ServerArgument, index: number): string {
  return argument.name || argument.valueHint || `argument ${index + 1}`;
}

/**
 * Flattens `packageArguments`: a named argument is its flag and then its value, a positional one its value. A named
 * argument with an empty value, and a required boolean one without a value, is a bare flag. An optional argument
 * without value and default is left out; a required one is `missing`.
 */
export function planArguments(list: readonly ServerArgument[] | null | undefined): PlannedArguments {
  const args: string[] = [];
  const missing: Requirement[] = [];
  for (const [index, argument] of (list ?? []).entries()) {
    const requirement = requirementOf(labelOf(argument, index), argument);
    const flag = argument.type === 'named' && argument.name ? [argument.name] : [];
    if (requirement.default !== undefined) {
      args.push(...flag, ...(requirement.default === '' ? [] : [requirement.default]));
    } else if (requirement.required && requirement.format === 'boolean' && flag.length > 0) {
      args.push(...flag);
    } else if (requirement.required) {
      missing.push(requirement);
    }
  }
  return { args, missing };
}
