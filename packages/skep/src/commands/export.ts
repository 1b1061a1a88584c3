import { resolve } from 'node:path';
import { atomicWrite } from '@skep/core/files/atomic-write.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import { encodeExport } from '../run-config/run-config.ts';
import { loadRunConfig } from '../run-config/file.ts';

export const exportCommand = defineCommand({
  usage: 'skep export [flags] NAME PATH',
  summary: 'Write the run configuration of a server to a file, or with - to the terminal',
  description: [
    'The values of variables that the catalogue calls secret are left out; skep run --from-config asks for them again. All others, those of -e too, are written in clear.',
  ],
  examples: [{ command: 'skep export time time.json', what: 'Elsewhere: skep run --from-config time.json' }],
  positionals: [
    { name: 'NAME', required: true },
    { name: 'PATH', required: true },
  ],
  settings: [
    ...settingsOf({ group: 'Output' }, [
      flag('choice', 'format', 'What to write', {
        choices: ['json', 'k8s'],
        notYetValues: ['k8s'],
        default: 'json',
      }),
    ]),
    ...commonSettings,
  ],
  async run({ positionals: [name = '', path = ''] }, { places, terminal, cwd }) {
    const config = await loadRunConfig(places, name);
    if (path === '-') return terminal.out(encodeExport(config));
    await atomicWrite(resolve(cwd, path), encodeExport(config), { mode: 0o600 });
    terminal.out(`Successfully exported run configuration for '${name}' to '${path}'\n`);
  },
});
