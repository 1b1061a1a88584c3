import { SkepError } from '../errors/skep-error.ts';
import type { Field } from '../settings/field.ts';
import { printable } from '../terminal/printable.ts';
import { commandDefiner, type Command, type Program } from './command.ts';
import { completionScript, SHELLS } from './completion-scripts.ts';
import type { Host } from './host.ts';
import { offersFor } from './offers.ts';

/** Prints the completion script for a shell. */
export function completionCommand<H extends Host>(
  program: Program<H>,
  settings: readonly Field[],
): Command<H> {
  return commandDefiner<H>()({
    usage: `${program.name} completion ${SHELLS.join('|')}`,
    summary: 'Print the completion script for a shell',
    examples: [
      {
        command: `source <(${program.name} completion bash)`,
        what: 'For this shell; put it into ~/.bashrc to keep it',
      },
    ],
    positionals: [{ name: 'SHELL', required: true }],
    settings,
    async run({ positionals: [shell = ''] }, { terminal }) {
      const script = completionScript(shell, program.name);
      if (script !== undefined) return terminal.out(script);
      throw new SkepError('usage/invalid-value', {
        message: `unknown shell "${shell}"`,
        hint: `choose one of: ${SHELLS.join(', ')}`,
      });
    },
  });
}

/** What the scripts call at each Tab. */
export function completeCommand<H extends Host>(program: Program<H>, settings: readonly Field[]): Command<H> {
  return commandDefiner<H>()({
    usage: `${program.name} complete -- WORDS...`,
    summary: 'Answer a completion script',
    rest: true,
    settings,
    async run({ rest = [] }, host) {
      const offers = await offersFor(rest, program, host);
      host.terminal.out(offers.map(({ value, brief }) => `${value}\t${printable(brief)}\n`).join(''));
    },
  });
}
