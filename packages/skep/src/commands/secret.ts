import { SkepError } from '@skep/core/errors/skep-error.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { commonSettings, defineCommand, formatSettings } from '../cli/command.ts';
import type { Context } from '../cli/context.ts';
import { referencesOf } from '../run-config/header-forward.ts';
import { findRunConfig, savedNames } from '../run-config/file.ts';
import { findSecret, openProvider, openProviderToKeep } from '../secrets/open-provider.ts';
import type { SecretsProvider } from '../secrets/provider.ts';
import { checkName, checkUserName, isSystemName, parseReference } from '../secrets/reference.ts';
import { checkValue, MAX_SECRET_BYTES } from '../secrets/secret-value.ts';
import { toJsonText } from '../workloads/to-json.ts';

const systemSettings = (brief: string) =>
  settingsOf({ group: 'Selection' }, [flag('bool', 'system', brief, { default: false })]);

const positionals = [{ name: 'NAME', required: true }];

export const secretSet = defineCommand({
  usage: 'skep secret set [flags] NAME',
  summary: 'Store a secret',
  description: [
    'The value is read from standard input where that is no terminal, without one line end at its end; else it is asked for and not shown.',
  ],
  examples: [
    { command: 'skep secret set github', what: 'Asks for the value' },
    { command: 'pass show github | skep secret set github', what: 'Takes what another program prints' },
    { command: 'skep run github --secret github,target=GITHUB_PERSONAL_ACCESS_TOKEN', what: 'Then use it' },
  ],
  positionals,
  settings: [...commonSettings],
  async run({ positionals: [given = ''] }, context) {
    const name = checkUserName(given);
    const provider = await openProviderToKeep(context);
    const { change } = provider;
    if (!change) throw readOnly(provider, 'setting');
    const value = await readValue(name, context);
    await change((secrets) => secrets.set(name, value));
    const { terminal } = context;
    terminal.out(`Secret ${printable(name)} is stored (${provider.kind})\n`);
    const users = await usersOf(name, context);
    if (users.length === 0) return;
    terminal.err(
      `Warning: ${users.join(', ')} ${users.length === 1 ? 'uses' : 'use'} it and ${users.length === 1 ? 'gets' : 'get'} the new value when restarted: skep restart ${users.join(' ')}\n`,
    );
  },
});

export const secretGet = defineCommand({
  usage: 'skep secret get [flags] NAME',
  summary: 'Print a secret',
  positionals,
  settings: [...commonSettings],
  async run({ positionals: [given = ''] }, context) {
    const name = checkUserName(given);
    const value = await findSecret(await openProvider(context), name, context);
    if (value === undefined) throw notFound(name);
    context.terminal.out(`${value}\n`);
  },
});

export const secretList = defineCommand({
  usage: 'skep secret list [flags]',
  summary: 'List the names of secrets',
  settings: [
    ...systemSettings('The ones that Skep keeps for its workloads instead'),
    ...formatSettings,
    ...commonSettings,
  ],
  async run({ values }, context) {
    const provider = await openProvider(context);
    const { list } = provider;
    if (!list) throw readOnly(provider, 'listing');
    const secrets = (await list()).filter(({ name }) => isSystemName(name) === values.system);
    const { terminal } = context;
    if (values.format === 'json') {
      return terminal.out(toJsonText(secrets.map(({ name, description = null }) => ({ name, description }))));
    }
    if (secrets.length === 0) return terminal.out('No secrets found\n');
    const lines = secrets.map(
      ({ name, description }) =>
        `  - ${printable(name)}${description ? ` (${printable(description)})` : ''}\n`,
    );
    terminal.out(`Available secrets:\n${lines.join('')}`);
  },
});

export const secretDelete = defineCommand({
  usage: 'skep secret delete [flags] NAME',
  summary: 'Delete a secret',
  positionals,
  settings: [
    ...systemSettings('One that Skep keeps for a workload; see skep secret list --system'),
    ...commonSettings,
  ],
  async run({ values, positionals: [given = ''] }, context) {
    const name = values.system ? checkSystemName(given) : checkUserName(given);
    const provider = await openProvider(context);
    const { change } = provider;
    if (!change) throw readOnly(provider, 'deleting');
    if ((await provider.get(name)) === undefined) throw notFound(name);
    await change((secrets) => secrets.delete(name));
    const { terminal } = context;
    terminal.out(`Secret ${printable(name)} is deleted\n`);
    const users = await usersOf(name, context);
    if (users.length > 0) terminal.err(`Warning: ${users.join(', ')} cannot be started without it\n`);
  },
});

function checkSystemName(name: string): string {
  if (isSystemName(name)) return checkName(name);
  throw new SkepError('secrets/invalid-name', {
    message: `"${printable(name)}" is no secret of the system`,
    hint: 'leave --system out, or see the names with skep secret list --system',
  });
}

function readOnly({ kind }: SecretsProvider, what: string): SkepError {
  return new SkepError('secrets/read-only', {
    message: `the ${kind} secrets provider does not support ${what} secrets${what === 'listing' ? '' : ' (read-only)'}`,
  });
}

const notFound = (name: string): SkepError =>
  new SkepError('secrets/not-found', { message: `secret "${printable(name)}" not found` });

/** What is piped, or typed unseen. Fails with `secrets/invalid-value`. */
async function readValue(name: string, { readInput, ask }: Context): Promise<string> {
  if (readInput) {
    const bytes = await readInput(MAX_SECRET_BYTES + 2);
    return checkValue(bytes, name, 'without line end');
  }
  if (!ask) {
    throw new SkepError('usage/missing-argument', {
      message: 'the value of the secret is missing, and nobody can be asked',
      hint: `pipe it: … | skep secret set ${printable(name)}`,
    });
  }
  const value = await ask({ name: `Value of ${name}`, required: true, secret: true });
  return checkValue(Buffer.from(value, 'utf8'), name);
}

/** The workloads that get it. */
async function usersOf(name: string, { places }: Pick<Context, 'places'>): Promise<readonly string[]> {
  const users: string[] = [];
  for (const workload of await savedNames(places)) {
    const config = await findRunConfig(places, workload);
    if (config && referencesOf(config).some((one) => parseReference(one).name === name)) users.push(workload);
  }
  return users;
}
