import type { Requirement } from '@skep/core/catalog/run-plan/requirement.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';

export interface EnvInputs {
  /** Variables of `--env-file`. */
  readonly file: Readonly<Record<string, string>>;
  /** Variables of `-e`. */
  readonly flags: Readonly<Record<string, string>>;
  /** What the catalogue says about variables. */
  readonly requirements: readonly Requirement[];
  /** Asks a person for one value; absent where nobody can be asked. */
  readonly ask?: (requirement: Requirement) => Promise<string>;
  /** How to give the value of a variable, where it is not the flag. */
  readonly give?: (name: string) => string;
}

export interface MergedEnv {
  readonly env: Readonly<Record<string, string>>;
  /** Names whose values are secrets, by what the catalogue says. */
  readonly secret: readonly string[];
}

/**
 * The server's variables (docs/behaviour/run.md#variables): file, then flags, then the catalogue's defaults for what is
 * still missing, then questions. Fails with `run/missing-env` naming everything that is required and missing, and with
 * `run/invalid-env` for a value that is none of the choices.
 */
export async function mergeEnv({ file, flags, requirements, ask, give }: EnvInputs): Promise<MergedEnv> {
  const env = new Map([...Object.entries(file), ...Object.entries(flags)]);
  for (const { name, default: value } of requirements) {
    if (!env.has(name) && value !== undefined) env.set(name, value);
  }
  const missing = requirements.filter((one) => one.required && (env.get(one.name) ?? '') === '');
  if (missing.length > 0 && !ask) throw missingEnv(missing, give);
  for (const requirement of missing) {
    const answer = ask ? await ask(requirement) : '';
    if (answer === '') throw missingEnv([requirement], give);
    env.set(requirement.name, answer);
  }
  for (const requirement of requirements) checkChoice(requirement, env.get(requirement.name));
  const secret = requirements.filter((one) => one.secret && env.has(one.name)).map((one) => one.name);
  return { env: Object.fromEntries(env), secret };
}

function missingEnv(missing: readonly Requirement[], give = withFlag): SkepError {
  const names = missing.map((one) => one.name);
  const about = missing.length === 1 ? missing[0]?.description : undefined;
  return new SkepError('run/missing-env', {
    message: `missing required environment variable${names.length > 1 ? 's' : ''}: ${names.join(', ')}${about ? ` (${about})` : ''}`,
    hint: `give ${names.length > 1 ? 'them' : 'it'} ${give(names[0] ?? 'KEY')}`,
    detail: { names },
  });
}

const withFlag = (name: string): string => `with -e ${name}=VALUE or --env-file`;

function checkChoice({ name, choices, secret }: Requirement, value: string | undefined): void {
  if (value === undefined || choices === undefined || choices.includes(value)) return;
  throw new SkepError('run/invalid-env', {
    message: `the environment variable ${name} ${secret ? 'has a value that is' : `is "${value}",`} none of: ${choices.join(', ')}`,
  });
}
