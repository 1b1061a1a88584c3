import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Field } from '@skep/core/settings/field.ts';
import { defineCommand } from '../cli/command.ts';
import type { Context } from '../cli/context.ts';
import { handOverByFlags } from '../plan/hand-over.ts';
import type { NewWorkload } from '../plan/plan.ts';
import { planImport } from '../plan/plan-import.ts';
import { planRun } from '../plan/plan-run.ts';
import { carryOut, surroundingsOf } from '../run/carry-out.ts';
import { carryOutOrFallBack, rememberAnswers } from '../run/fall-back.ts';
import { besideFromConfig, runSettings } from '../settings/run-settings.ts';

export const run = defineCommand({
  usage: 'skep run [flags] SERVER [-- ARGS...]',
  summary: 'Run an MCP server and print the URL to connect to',
  description: [
    'SERVER is a name of the catalogue, an image, npx://PACKAGE, uvx://PACKAGE or, in the sandbox, go://PACKAGE. What follows -- goes to the server.',
  ],
  examples: [
    { command: 'skep run everything', what: 'A server of the catalogue, in the background' },
    {
      command: 'skep run npx://@modelcontextprotocol/server-filesystem -v ~/notes:/notes:ro -- /notes',
      what: 'A package from npm that may read one folder',
    },
    {
      command: 'skep run ghcr.io/github/github-mcp-server -e GITHUB_PERSONAL_ACCESS_TOKEN',
      what: 'An image, with a variable of yours',
    },
    { command: 'skep run --explain everything', what: 'Only says where each setting comes from' },
  ],
  positionals: [{ name: 'SERVER' }],
  rest: true,
  settings: runSettings,
  async run({ values, settings, given, positionals: [target], rest }, asked) {
    const context = rememberAnswers(asked);
    handOverByFlags(values, context);
    const agree = (): Promise<boolean> => Promise.resolve(true);
    // What is only explained is granted nothing.
    const around = surroundingsOf(values.explain ? { ...context, confirm: agree } : context, values.runtime);
    if (values.fromConfig === undefined) {
      if (target === undefined)
        throw new SkepError('usage/missing-argument', { message: 'missing argument SERVER' });
      const request = { target, values, settings, args: rest };
      const plan = await planRun(request, around);
      await (values.explain ? explain(plan, context) : carryOutOrFallBack(plan, request, context));
      return;
    }
    const isOther = (name: string): boolean => !besideFromConfig.some((allowed) => allowed === name);
    const offending = [...given].filter(isOther).map((name) => `--${flagOf(name)}`);
    if (target !== undefined) offending.push(target);
    if (rest !== undefined) offending.push('--');
    if (offending.length > 0) {
      throw new SkepError('usage/conflict', {
        message: `--from-config cannot be used with other configuration flags: ${offending.join(', ')}`,
        hint: 'edit the file instead',
      });
    }
    const { fromConfig: path, trustConfig: trusted, foreground } = values;
    const request = { path, trusted, foreground, explain: values.explain, settings };
    const plan = await planImport(request, around);
    await (values.explain ? explain(plan, context) : carryOut(plan, context));
  },
});

/** Only says what decided it. */
async function explain(plan: NewWorkload, context: Context): Promise<void> {
  const { explainPlan } = await import('../plan/explain.ts');
  context.terminal.out(explainPlan(plan, context.terminal));
}

function flagOf(name: string): string {
  const rows: readonly Field[] = runSettings;
  return rows.find((row) => row.name === name)?.flag ?? name;
}
