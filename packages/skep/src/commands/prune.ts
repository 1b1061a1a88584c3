import { SkepError } from '@skep/core/errors/skep-error.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import { openRuntimes } from '../cli/open-runtime.ts';
import { findRunConfig, savedNames } from '../run-config/file.ts';
import { findPrevious } from '../run-config/previous.ts';
import { whileNothingIsMade } from '../workloads/name-lock.ts';

export const prune = defineCommand({
  usage: 'skep prune [flags]',
  summary: 'Remove built images and fetched packages that no server uses',
  description: [
    'What a server runs from stays, and what it can go back to after an upgrade. An image that you gave a name of your own, with skep build --tag, stays as well.',
  ],
  settings: [...commonSettings],
  async run(_input, context) {
    const { places, terminal } = context;
    const pruned = await whileNothingIsMade(context, async () => {
      const used: string[] = [];
      for (const name of await savedNames(places)) {
        const configs = [await findRunConfig(places, name), await findPrevious(places, name)];
        used.push(...configs.flatMap((one) => (one === undefined ? [] : [one.image])));
      }
      for (const runtime of await openRuntimes(context)) await runtime.sweep(used);
    });
    if (pruned) return terminal.out('Removed what no server uses\n');
    throw new SkepError('file/locked', {
      message: 'another command is starting or building a server',
      hint: 'try again when it is done',
    });
  },
});
