import { redactUrl } from '@skep/core/log/redact.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import { catalogOf } from '../catalog/open-catalog.ts';
import { updateAppConfig } from '../config/app-config.ts';
import { detectRegistry, noRegistry } from '../catalog/registry-kind.ts';

const PROBE_MS = 5_000;
const MAX_BYTES = 100 * 1024 * 1024;

export const setRegistry = defineCommand({
  usage: 'skep config set-registry [flags] ADDRESS|FILE',
  summary: 'Use another catalogue: a registry address, or a file',
  examples: [
    {
      command: 'skep config set-registry https://registry.example.com',
      what: 'Anything that speaks the MCP Registry API',
    },
    { command: 'skep config set-registry ./catalogue.json', what: 'A file' },
  ],
  positionals: [{ name: 'ADDRESS', required: true }],
  settings: [
    ...settingsOf({ group: 'Safety' }, [
      flag('bool', 'allow-private-ip', 'The catalogue may be at a private address or plain http', {
        default: false,
      }),
    ]),
    ...commonSettings,
  ],
  async run({ values, positionals: [address = ''] }, { places, cwd, program, signal, terminal }) {
    const allowPrivate = values.allowPrivateIp;
    const client = async () => {
      const { createClient } = await import('@skep/core/fetch/client.ts');
      const userAgent = `skep/${program.version}`;
      return createClient({ timeoutMs: PROBE_MS, maxBytes: MAX_BYTES, allowPrivate, userAgent });
    };
    const choice = await detectRegistry(address, { cwd, allowPrivate, client, signal });
    await updateAppConfig(places, { ...choice, allow_private_registry_ip: allowPrivate ? true : undefined });
    terminal.err(`Servers are now looked up in ${redactUrl(address)}\n`);
  },
});

export const getRegistry = defineCommand({
  usage: 'skep config get-registry',
  summary: 'Show which catalogue is used',
  settings: [...commonSettings],
  async run(_input, context) {
    const { kind, location } = await catalogOf(context);
    context.terminal.out(location === '' ? 'built-in catalogue\n' : `${redactUrl(location)} (${kind})\n`);
  },
});

export const unsetRegistry = defineCommand({
  usage: 'skep config unset-registry',
  summary: 'Go back to the built-in catalogue',
  settings: [...commonSettings],
  async run(_input, { places }) {
    await updateAppConfig(places, { ...noRegistry, allow_private_registry_ip: undefined });
  },
});
