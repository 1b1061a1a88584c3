import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Field } from '@skep/core/settings/field.ts';
import { defineCommand } from '../cli/command.ts';
import { handOverByFlags } from '../plan/hand-over.ts';
import { planImport } from '../plan/plan-import.ts';
import { planRun } from '../plan/plan-run.ts';
import { carryOut, surroundingsOf } from '../run/carry-out.ts';
import { givenLimits } from '../run-config/proxy-limits.ts';
import { besideFromConfig, runSettings } from '../settings/run-settings.ts';

export const run = defineCommand({
  usage: 'skep run [flags] SERVER [-- ARGS...]',
  summary: 'Run an MCP server and print the URL to connect to',
  description: [
    'SERVER is a name of the catalogue, an image, npx://PACKAGE or, with a container engine, uvx://PACKAGE. What follows -- goes to the server.',
  ],
  examples: [
    { command: 'skep run everything', what: 'A server of the catalogue, in the background' },
    {
      command: 'skep run npx://@modelcontextprotocol/server-filesystem -v ~/notes:/notes:ro -- /notes',
      what: 'A package from npm that may read one folder',
    },
    {
      command: 'skep run ghcr.io/github/github-mcp-server -e GITHUB_PERSONAL_ACCESS_TOKEN=…',
      what: 'An image',
    },
  ],
  positionals: [{ name: 'SERVER' }],
  rest: true,
  settings: runSettings,
  async run({ values, settings, given, positionals: [target], rest }, context) {
    handOverByFlags(values, context);
    if (values.fromConfig === undefined) {
      if (target === undefined)
        throw new SkepError('usage/missing-argument', { message: 'missing argument SERVER' });
      return carryOut(await planRun({ target, values, args: rest }, surroundingsOf(context)), context);
    }
    const other = [...given].filter((name) => !besideFromConfig.some((allowed) => allowed === name));
    if (other.length > 0 || target !== undefined || rest !== undefined) {
      const flags = other.map((name) => `--${flagOf(name)}`);
      const offending = [
        ...flags,
        ...(target === undefined ? [] : [target]),
        ...(rest === undefined ? [] : ['--']),
      ];
      throw new SkepError('usage/conflict', {
        message: `--from-config cannot be used with other configuration flags: ${offending.join(', ')}`,
        hint: 'edit the file instead',
      });
    }
    const { fromConfig: path, trustConfig: trusted, foreground } = values;
    const request = { path, trusted, foreground, limits: givenLimits(settings) };
    await carryOut(await planImport(request, surroundingsOf(context)), context);
  },
});

function flagOf(name: string): string {
  const rows: readonly Field[] = runSettings;
  return rows.find((row) => row.name === name)?.flag ?? name;
}
