import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { userInfo } from 'node:os';
import { promisify } from 'node:util';
import { lookAtAutostart, starterOf, turnOff, turnOn, type State } from '../autostart/autostart.ts';
import { commonSettings, defineCommand, formatSettings } from '../cli/command.ts';
import type { Context } from '../cli/context.ts';
import { toFacts } from '../print/table.ts';
import { toJsonText } from '../workloads/to-json.ts';

const RELOAD_MS = 10_000;

const STATES: Readonly<Record<State, string>> = {
  off: 'off',
  on: 'on',
  outdated: 'on, for another place of Skep or Node; skep autostart on writes it anew',
  changed: 'changed by somebody else, and left alone',
  unavailable: 'off; neither systemd nor launchd starts services here',
};

export const autostartOn = defineCommand({
  usage: 'skep autostart on',
  summary: 'Start servers again after a reboot that ran when the machine went down',
  description: [
    'Writes a service of your own (a user unit of systemd, an agent of launchd) that starts the supervisor of Skep. It holds paths and no secrets.',
  ],
  settings: [...commonSettings],
  async run(_, context) {
    const { terminal, platform } = context;
    const file = await turnOn(starterOf(context));
    terminal.out(`Servers that run when this machine goes down start again after a reboot, by ${file}\n`);
    if (platform !== 'linux') return;
    if (!(await reload(context)))
      terminal.err('systemd could not be asked to read it now; it will when you sign in next\n');
    const user = userInfo().username;
    if (!existsSync(`/var/lib/systemd/linger/${user}`))
      terminal.err('They start when you sign in; to have it done before: loginctl enable-linger\n');
  },
});

export const autostartOff = defineCommand({
  usage: 'skep autostart off',
  summary: 'Start nothing after a reboot; what runs now runs on',
  settings: [...commonSettings],
  async run(_, context) {
    const { terminal, platform } = context;
    const file = await turnOff(starterOf(context));
    if (file === undefined) return terminal.err('Nothing was started after a reboot anyway\n');
    if (platform === 'linux') await reload(context);
    terminal.out(`Removed ${file}; nothing is started after a reboot\n`);
  },
});

export const autostartStatus = defineCommand({
  usage: 'skep autostart status [flags]',
  summary: 'Show whether servers start again after a reboot',
  settings: [...formatSettings, ...commonSettings],
  async run({ values }, context) {
    const { file, state } = await lookAtAutostart(starterOf(context));
    if (values.format === 'json') return context.terminal.out(toJsonText({ state, file: file ?? null }));
    const facts = [['Autostart', STATES[state]] as const, ['File', file] as const];
    context.terminal.out(toFacts(facts, context.terminal));
  },
});

/** Has systemd read its units anew; false where it cannot be asked. */
async function reload({ env }: Context): Promise<boolean> {
  try {
    await promisify(execFile)('systemctl', ['--user', 'daemon-reload'], { timeout: RELOAD_MS, env });
    return true;
  } catch {
    return false;
  }
}
