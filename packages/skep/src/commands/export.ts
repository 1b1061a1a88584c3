import { resolve } from 'node:path';
import { printable } from '@skep/core/terminal/printable.ts';
import { atomicWrite } from '@skep/core/files/atomic-write.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import { encodeExport, exportedHeaders, type RunConfig } from '../run-config/run-config.ts';
import { loadRunConfig } from '../run-config/file.ts';

export const exportCommand = defineCommand({
  usage: 'skep export [flags] NAME PATH',
  summary: 'Write the run configuration of a server to a file, or with - to the terminal',
  description: [
    'The values of variables that the catalogue calls secret are left out; skep run --from-config asks for them again. So are headers of a server elsewhere whose names speak of a secret. All others, those of -e too, are written in clear.',
  ],
  examples: [
    { command: 'skep export time time.json', what: 'Elsewhere: skep run --from-config time.json' },
    {
      command: 'skep export time - --format k8s | kubectl apply -f -',
      what: 'An MCPServer of a cluster with the ToolHive operator',
    },
  ],
  positionals: [
    { name: 'NAME', required: true },
    { name: 'PATH', required: true },
  ],
  settings: [
    ...settingsOf({ group: 'Output' }, [
      flag('choice', 'format', 'What to write', {
        choices: ['json', 'k8s', 'seatbelt'],
        default: 'json',
      }),
    ]),
    ...commonSettings,
  ],
  async run({ positionals: [name = '', path = ''], values: { format } }, { places, terminal, cwd }) {
    const config = await loadRunConfig(places, name);
    const { text, notes, what } = await FORMATS[format](config);
    for (const note of notes) terminal.err(`${printable(note)}\n`);
    if (path === '-') return terminal.out(text);
    await atomicWrite(resolve(cwd, path), text, { mode: 0o600 });
    terminal.out(`Successfully exported ${what} for '${name}' to '${path}'\n`);
  },
});

interface Exported {
  readonly text: string;
  /** What a person has to know of it. */
  readonly notes: readonly string[];
  readonly what: string;
}

/** What others read is loaded only when asked for: YAML takes its time. */
const FORMATS: Readonly<Record<'json' | 'k8s' | 'seatbelt', (config: RunConfig) => Promise<Exported>>> = {
  json: async (config) => ({
    text: encodeExport(config),
    notes: exportedHeaders(config).leftOut.map(
      (name) => `the value of the header ${name} is not exported; give it again with the file`,
    ),
    what: 'run configuration',
  }),
  async k8s(config) {
    const { toKubernetes } = await import('../run-config/kubernetes.ts');
    return { ...toKubernetes(config), what: 'Kubernetes MCPServer resource' };
  },
  async seatbelt(config) {
    const { toSeatbelt } = await import('../run-config/seatbelt.ts');
    return { ...toSeatbelt(config), what: 'Seatbelt profile' };
  },
};
