import type { ServerInput } from '../server-json.ts';

/** A value that somebody has to, or may, give before the server runs: an environment variable, header or argument. */
export interface Requirement {
  /** Variable or header name, flag, or label of a positional argument. */
  readonly name: string;
  readonly description?: string;
  readonly required: boolean;
  readonly secret: boolean;
  /** Used when nothing is given. */
  readonly default?: string;
  readonly choices?: readonly string[];
  /** Example of what to give, for a prompt; never used as a value. */
  readonly placeholder?: string;
  /** `string`, `number`, `boolean` or `filepath`. */
  readonly format?: string;
}

/** An input that may carry template variables. */
export type TemplateInput = ServerInput & {
  readonly variables?: Readonly<Record<string, ServerInput>> | null | undefined;
};

const PLACEHOLDER = /\{([^{}]+)\}/g;

/**
 * Fills `{name}` from `known`. `open` lists the names that have no value; their braces stay as they are
 * (server.json schema, `Input.value`).
 */
export function fill(
  template: string,
  known: (name: string) => string | undefined,
): { readonly text: string; readonly open: readonly string[] } {
  const open: string[] = [];
  const text = template.replace(PLACEHOLDER, (braces, name: string) => {
    const value = known(name);
    if (value === undefined) open.push(name);
    return value ?? braces;
  });
  return { text, open };
}

function described(name: string, input: ServerInput): Requirement {
  return {
    name,
    required: input.isRequired ?? false,
    secret: input.isSecret ?? false,
    ...(input.description ? { description: input.description } : {}),
    ...(input.choices?.length ? { choices: input.choices } : {}),
    ...(input.placeholder ? { placeholder: input.placeholder } : {}),
    ...(input.format ? { format: input.format } : {}),
  };
}

/** A variable of a template that no value is known for decides whether the whole is required and secret. */
function openRequirement(
  name: string,
  input: TemplateInput,
  open: readonly string[],
  template: string,
): Requirement {
  const variables = open.map((key) => variableOf(input, key)).filter((variable) => variable !== undefined);
  const base = described(name, input);
  const whole =
    variables.length === 1 && template === `{${open[0]}}` ? described(name, variables[0] ?? {}) : base;
  const undeclared = variables.length < open.length;
  return {
    ...base,
    ...whole,
    required: base.required || undeclared || variables.some((variable) => variable.isRequired),
    secret: base.secret || variables.some((variable) => variable.isSecret),
    ...(whole.placeholder === undefined && template !== `{${open[0]}}` ? { placeholder: template } : {}),
  };
}

/**
 * What an input asks for. A fixed `value` becomes the default; a template whose variables have no values asks for the
 * whole value, with the template as the example to follow.
 */
export function requirementOf(name: string, input: TemplateInput): Requirement {
  if (input.value === null || input.value === undefined) {
    const base = described(name, input);
    return input.default === null || input.default === undefined ? base : { ...base, default: input.default };
  }
  const { text, open } = fill(input.value, (key) => variableValue(input, key));
  return open.length === 0
    ? { ...described(name, input), default: text }
    : openRequirement(name, input, open, input.value);
}

/** The declaration of a template variable. Names come from a catalogue: inherited members are none. */
export function variableOf(input: Pick<TemplateInput, 'variables'>, key: string): ServerInput | undefined {
  const { variables } = input;
  return variables && Object.hasOwn(variables, key) ? variables[key] : undefined;
}

/** Value or default of a template variable. */
export function variableValue(input: Pick<TemplateInput, 'variables'>, key: string): string | undefined {
  const variable = variableOf(input, key);
  return variable?.value ?? variable?.default ?? undefined;
}
