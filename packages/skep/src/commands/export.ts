import { resolve } from 'node:path';
import { printable } from '@skep/core/terminal/printable.ts';
import { atomicWrite } from '@skep/core/files/atomic-write.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import type { KubernetesExport } from '../run-config/kubernetes.ts';
import { encodeExport, type RunConfig } from '../run-config/run-config.ts';
import { loadRunConfig } from '../run-config/file.ts';

export const exportCommand = defineCommand({
  usage: 'skep export [flags] NAME PATH',
  summary: 'Write the run configuration of a server to a file, or with - to the terminal',
  description: [
    'The values of variables that the catalogue calls secret are left out; skep run --from-config asks for them again. All others, those of -e too, are written in clear.',
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
        choices: ['json', 'k8s'],
        default: 'json',
      }),
    ]),
    ...commonSettings,
  ],
  async run({ positionals: [name = '', path = ''], values: { format } }, { places, terminal, cwd }) {
    const config = await loadRunConfig(places, name);
    const { text, notes } =
      format === 'k8s' ? await forKubernetes(config) : { text: encodeExport(config), notes: [] };
    for (const note of notes) terminal.err(`${printable(note)}\n`);
    if (path === '-') return terminal.out(text);
    await atomicWrite(resolve(cwd, path), text, { mode: 0o600 });
    const what = format === 'k8s' ? 'Kubernetes MCPServer resource for' : 'run configuration for';
    terminal.out(`Successfully exported ${what} '${name}' to '${path}'\n`);
  },
});

/** Loaded only when asked for: YAML takes its time. */
async function forKubernetes(config: RunConfig): Promise<KubernetesExport> {
  const { toKubernetes } = await import('../run-config/kubernetes.ts');
  return toKubernetes(config);
}
