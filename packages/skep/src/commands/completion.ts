import { SkepError } from '@skep/core/errors/skep-error.ts';
import { catalogOf } from '../catalog/catalog-of.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import type { Context } from '../cli/context.ts';
import { COMMANDS } from '../commands.ts';
import { offersFor, type Offer, type OfferSources } from '../completion/offers.ts';
import { COMPLETION_SCRIPTS } from '../completion/scripts.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { statusNames } from '../supervisor/state.ts';

/** Nobody waits longer than this for a Tab. */
const CATALOGUE_MS = 2_000;

const SHELLS = [...COMPLETION_SCRIPTS.keys()];

export const completion = defineCommand({
  usage: `skep completion ${SHELLS.join('|')}`,
  summary: 'Print the completion script for a shell',
  examples: [
    { command: 'source <(skep completion bash)', what: 'For this shell; put it into ~/.bashrc to keep it' },
  ],
  positionals: [{ name: 'SHELL', required: true }],
  settings: [...commonSettings],
  async run({ positionals: [shell = ''] }, { terminal }) {
    const script = COMPLETION_SCRIPTS.get(shell);
    if (script === undefined) {
      throw new SkepError('usage/invalid-value', {
        message: `unknown shell "${shell}"`,
        hint: `choose one of: ${SHELLS.join(', ')}`,
      });
    }
    terminal.out(script);
  },
});

/** What the scripts call at each Tab. Everything offered derives from the tables. */
export const complete = defineCommand({
  usage: 'skep complete -- WORDS...',
  summary: 'Answer a completion script',
  rest: true,
  settings: [...commonSettings],
  async run({ rest = [] }, context) {
    const offers = await offersFor(rest, sourcesOf(context));
    context.terminal.out(offers.map(({ value, brief }) => `${value}\t${printable(brief)}\n`).join(''));
  },
});

const sourcesOf = (context: Context): OfferSources => ({
  commands: COMMANDS,
  arguments: {
    workload: async () => named(await statusNames(context.places)),
    shell: async () => named(SHELLS),
    server: () => servers(context),
  },
});

const named = (names: readonly string[]): readonly Offer[] => names.map((value) => ({ value, brief: '' }));

async function servers(context: Context): Promise<readonly Offer[]> {
  const signal = AbortSignal.any([context.signal, AbortSignal.timeout(CATALOGUE_MS)]);
  const entries = await (await catalogOf(context)).list({ signal });
  return entries.flatMap(({ name, document: { description: brief } }) => {
    const short = name.slice(name.lastIndexOf('/') + 1);
    return short === name ? [{ value: name, brief }] : [short, name].map((value) => ({ value, brief }));
  });
}
