import type { Writable } from 'node:stream';
import type { Requirement } from '@skep/core/catalog/run-plan/requirement.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { printable } from '@skep/core/terminal/printable.ts';

/** Asks a person for one value; absent where nobody can be asked. */
export type Ask = (requirement: Requirement) => Promise<string>;

/** Asks a person yes or no; the answer to a bare Enter is no. Absent where nobody can be asked. */
export type Confirm = (question: string) => Promise<boolean>;

/**
 * Asks the person at the terminal for one value; a secret is not shown while it is typed. Questions go to `output`,
 * which is stderr: stdout belongs to data. Fails with `run/cancelled` on Ctrl-C.
 */
export async function askValue(requirement: Requirement, output: Writable): Promise<string> {
  const { isCancel, password, select, text } = await import('@clack/prompts');
  const about = requirement.description === undefined ? '' : ` — ${printable(requirement.description)}`;
  const message = `${printable(requirement.name)}${about}`;
  const { choices, placeholder } = requirement;
  const answer = requirement.secret
    ? await password({ message, output })
    : choices
      ? await select({
          message,
          output,
          options: choices.map((value) => ({ value, label: printable(value) })),
        })
      : await text({
          message,
          output,
          ...(placeholder === undefined ? {} : { placeholder: printable(placeholder) }),
        });
  if (isCancel(answer)) throw new SkepError('run/cancelled');
  return answer ?? '';
}

/** Asks the person at the terminal. Fails with `run/cancelled` on Ctrl-C. */
export async function confirmAt(output: Writable, question: string): Promise<boolean> {
  const { confirm, isCancel } = await import('@clack/prompts');
  const answer = await confirm({ message: question, initialValue: false, output });
  if (isCancel(answer)) throw new SkepError('run/cancelled');
  return answer;
}
