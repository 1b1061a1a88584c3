import { isSecretName, redactText } from '@skep/core/log/redact.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import { loadAppConfig, updateAppConfig, type AppConfig } from '../config/app-config.ts';
import { checkBuildVariable } from '../plan/build-access.ts';
import { toTable } from '../print/table.ts';
import { checkUserName } from '../secrets/reference.ts';

const NAME = { name: 'NAME' };

/** What a variable is set to, for people: nothing that signs in. */
export function shownVariable(name: string, value: string): string {
  return isSecretName(name) ? '********' : redactText(value);
}

export const setBuildEnv = defineCommand({
  usage: 'skep config set-build-env [flags] NAME [VALUE]',
  summary: 'Give a variable to whatever fetches packages',
  description: [
    'The variable is known to npm, uv, pip and go while they fetch a package, and to no server. Give a value, or say where it comes from.',
  ],
  examples: [
    {
      command: 'skep config set-build-env NPM_CONFIG_REGISTRY https://npm.example.com',
      what: 'A registry of your own',
    },
    {
      command: 'skep config set-build-env --from-secret pypi UV_DEFAULT_INDEX',
      what: 'An index with its login',
    },
    { command: 'skep config set-build-env --from-env GOPROXY', what: 'What the shell of each command says' },
  ],
  positionals: [{ ...NAME, required: true }, { name: 'VALUE' }],
  settings: [
    ...settingsOf({ group: 'Value' }, [
      flag('string', 'from-secret', 'Take the value from the secrets manager', {
        placeholder: 'secret',
        excludes: ['fromEnv'],
      }),
      flag('bool', 'from-env', 'Take the value from the environment of each command', { default: false }),
    ]),
    ...commonSettings,
  ],
  async run({ values, positionals: [name = '', value] }, { places, terminal }) {
    const { fromSecret, fromEnv } = values;
    const sources = [value, fromSecret, fromEnv ? name : undefined].filter((one) => one !== undefined);
    if (sources.length !== 1) {
      throw new SkepError('usage/conflict', {
        message: 'give exactly one of VALUE, --from-secret and --from-env',
      });
    }
    checkBuildVariable(name, value);
    const { buildEnvFromShell = [] } = await loadAppConfig(places);
    const others = buildEnvFromShell.filter((one) => one !== name);
    await updateAppConfig(places, {
      [`build_env.${name}`]: value,
      [`build_env_from_secrets.${name}`]: fromSecret === undefined ? undefined : checkUserName(fromSecret),
      build_env_from_shell: listOr(fromEnv ? [...others, name] : others),
    });
    const where =
      fromSecret === undefined ? 'the environment of each command' : `the secret ${printable(fromSecret)}`;
    const what = value === undefined ? `taken from ${where}` : printable(shownVariable(name, value));
    terminal.err(`${name} of builds is now ${what}\n`);
  },
});

export const getBuildEnv = defineCommand({
  usage: 'skep config get-build-env [NAME]',
  summary: 'Show the variables given to whatever fetches packages',
  positionals: [NAME],
  settings: [...commonSettings],
  async run({ positionals: [name] }, { places, terminal }) {
    const all = rowsOf(await loadAppConfig(places)).filter(([one]) => name === undefined || one === name);
    if (all.length === 0)
      return terminal.out(
        `no variable${name === undefined ? '' : ` ${printable(name)}`} is set for builds\n`,
      );
    terminal.out(toTable(['NAME', 'VALUE'], all, terminal));
  },
});

export const unsetBuildEnv = defineCommand({
  usage: 'skep config unset-build-env [flags] [NAME]',
  summary: 'Take a variable of builds away again',
  positionals: [NAME],
  settings: [
    ...settingsOf({ group: 'Selection' }, [flag('bool', 'all', 'All of them', { default: false })]),
    ...commonSettings,
  ],
  async run({ values: { all }, positionals: [name] }, { places }) {
    if (all === (name !== undefined)) {
      throw new SkepError('usage/conflict', { message: 'give a NAME or --all' });
    }
    if (name === undefined) {
      return updateAppConfig(places, {
        build_env: undefined,
        build_env_from_secrets: undefined,
        build_env_from_shell: undefined,
      });
    }
    checkBuildVariable(name);
    const { buildEnvFromShell = [] } = await loadAppConfig(places);
    await updateAppConfig(places, {
      [`build_env.${name}`]: undefined,
      [`build_env_from_secrets.${name}`]: undefined,
      build_env_from_shell: listOr(buildEnvFromShell.filter((one) => one !== name)),
    });
  },
});

/** An empty list is no entry. */
const listOr = (names: readonly string[]): readonly string[] | undefined =>
  names.length === 0 ? undefined : names;

function rowsOf({ buildEnv = {}, buildEnvFromSecrets = {}, buildEnvFromShell = [] }: AppConfig): string[][] {
  const rows = [
    ...Object.entries(buildEnv).map(([name, value]) => [name, shownVariable(name, value)]),
    ...Object.entries(buildEnvFromSecrets).map(([name, secret]) => [name, `secret ${secret}`]),
    ...buildEnvFromShell.map((name) => [name, 'environment of the command']),
  ];
  return rows.map((row) => row.map((text) => printable(text)));
}
