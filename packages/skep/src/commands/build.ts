import { resolve } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { atomicWrite } from '@skep/core/files/atomic-write.ts';
import { flag, settingsOf, valuesOf } from '@skep/core/settings/define-settings.ts';
import { mergeSettings } from '@skep/core/settings/merge.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import { loadAppConfig } from '../config/app-config.ts';
import { buildOf, checkBuildWith, preparationOf } from '../plan/preparation.ts';
import { runtimeConfigOf } from '../plan/runtime-configs.ts';
import { settingsOfBuild, settingsOfMachine } from '../plan/settings-of-run.ts';
import { openProgress } from '../print/progress.ts';
import { parsePackageReference } from '../protocol/reference.ts';
import { surroundingsOf } from '../run/carry-out.ts';
import { buildSettings } from '../settings/build.ts';
import { runSettings } from '../settings/run-settings.ts';
import { holdPreparing } from '../workloads/name-lock.ts';

export const build = defineCommand({
  usage: 'skep build [flags] PACKAGE [-- ARGS...]',
  summary: 'Build the image of a package without running it',
  description: [
    'PACKAGE is npx://PACKAGE, uvx://PACKAGE, go://PACKAGE or go://./DIRECTORY. What follows -- is baked into the image. Run the image by its name: skep run NAME.',
  ],
  examples: [
    {
      command: 'skep build -t team/files:1 npx://@modelcontextprotocol/server-filesystem',
      what: 'An image with a name of yours',
    },
    { command: 'skep build --dry-run uvx://mcp-server-time', what: 'Only prints the Dockerfile' },
  ],
  positionals: [{ name: 'PACKAGE', required: true }],
  rest: true,
  settings: [
    ...buildSettings,
    ...settingsOf({ group: 'Result' }, [
      flag('string', 'tag', 'Name of the image', {
        short: 't',
        placeholder: 'name:tag',
        excludes: ['output', 'dryRun'],
      }),
      flag('path', 'output', 'Write the Dockerfile to this file, and build nothing', {
        short: 'o',
        placeholder: 'file',
      }),
      flag('bool', 'dry-run', 'Print the Dockerfile, and build nothing', { default: false }),
    ]),
    ...commonSettings,
  ],
  async run({ values, settings, positionals: [target = ''], rest }, context) {
    const { places, signal, terminal, cwd } = context;
    const source = parsePackageReference(target, cwd);
    checkBuildWith(values, source);
    const app = await loadAppConfig(places);
    const around = surroundingsOf(context);
    const merged = mergeSettings(runSettings, [
      settings,
      settingsOfBuild(app, source, context),
      ...settingsOfMachine(app, context),
    ]);
    const asked = preparationOf(
      source,
      { build: buildOf(valuesOf(runSettings, merged)), settings: merged, app },
      around,
    );
    const { runtime, info } = await around.connect();
    await info;
    if (!runtime.runsImages || runtime.dockerfile === undefined) {
      throw new SkepError('usage/not-available', {
        message: `the ${runtime.kind} builds no images`,
        hint: 'start a container engine; skep run needs none for a package',
      });
    }
    const { runtime_env: imageEnv } = runtimeConfigOf(app, source);
    const report = openProgress(terminal);
    const { tag, output, dryRun } = values;
    const request = {
      ...asked,
      ...(imageEnv && { imageEnv }),
      ...(rest && { bakedArgs: rest }),
      ...(tag !== undefined && { tag }),
      report,
      signal,
    };
    try {
      if (output === undefined && !dryRun) {
        using _gate = await holdPreparing(context);
        const { reference } = await runtime.prepare(request);
        report.end();
        return terminal.out(`Successfully built container image: ${tag ?? reference}\n`);
      }
      const text = await runtime.dockerfile(request);
      report.end();
      if (output === undefined) return terminal.out(text);
      await atomicWrite(resolve(cwd, output), text, { mode: 0o600 });
      terminal.err(`The Dockerfile is in ${resolve(cwd, output)}\n`);
    } finally {
      report.end();
    }
  },
});
