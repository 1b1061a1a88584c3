import { commonSettings, defineCommand, formatSettings } from '../cli/command.ts';
import { toJsonText } from '../workloads/to-json.ts';

/** `skep version` alone is answered by main.ts without loading this. */
export const version = defineCommand({
  usage: 'skep version [flags]',
  summary: 'Show the version',
  settings: [...formatSettings, ...commonSettings],
  async run({ values }, { program, platform, terminal }) {
    if (values.format === 'json') terminal.out(toJsonText({ version: program.version, platform }));
    else terminal.out(`skep ${program.version}\n`);
  },
});
