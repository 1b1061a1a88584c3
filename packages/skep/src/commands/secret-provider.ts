import { existsSync } from 'node:fs';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import type { Context } from '../cli/context.ts';
import { checkKind, chooseProvider, chosenKind, PROVIDERS } from '../secrets/open-provider.ts';
import type { ProviderKind } from '../secrets/provider.ts';
import { forgetPassword } from '../secrets/store-password.ts';

/** Written, read and removed again, to see whether a place works before it is chosen. */
const PROBE = '__skep_setup-validation-test';

export const secretSetup = defineCommand({
  usage: 'skep secret setup [flags]',
  summary: 'Choose where secrets are kept',
  settings: [...commonSettings],
  async run(_input, context) {
    const { ask, terminal } = context;
    if (!ask) {
      throw new SkepError('usage/missing-argument', {
        message: 'nobody can be asked where secrets are to be kept',
        hint: 'name it: skep secret provider encrypted',
      });
    }
    for (const [kind, { brief }] of Object.entries(PROVIDERS))
      terminal.err(`  ${kind.padEnd(12)} ${brief}\n`);
    const choices = Object.keys(PROVIDERS);
    await choose(
      await ask({ name: 'Where to keep secrets', required: true, secret: false, choices }),
      context,
    );
  },
});

export const secretProvider = defineCommand({
  usage: 'skep secret provider [flags] [PROVIDER]',
  summary: 'Say where secrets are kept, or choose it without a question',
  description: [
    ...Object.entries(PROVIDERS).map(([kind, { brief }]) => `${kind}: ${brief}.`),
    'What is kept in one place is not moved to the other.',
  ],
  positionals: [{ name: 'PROVIDER' }],
  settings: [...commonSettings],
  async run({ positionals: [kind] }, context) {
    if (kind !== undefined) return choose(kind, context);
    context.terminal.out(`${(await chosenKind(context)) ?? 'not set up'}\n`);
  },
});

async function choose(text: string, context: Context): Promise<void> {
  const kind = checkKind(text);
  await checkWorks(kind, context);
  await chooseProvider(kind, context);
  const { env, terminal, places } = context;
  const where = kind === 'encrypted' ? `, in ${places.secretsFile}` : '';
  terminal.out(`Secrets provider: ${kind}${where}\n`);
  const override = env['SKEP_SECRETS_PROVIDER'] ?? '';
  if (override !== '' && override !== kind) {
    terminal.err(`Warning: SKEP_SECRETS_PROVIDER is ${override} here, and is used instead\n`);
  }
}

/** Fails as the provider does where it cannot be used. */
async function checkWorks(kind: ProviderKind, context: Context): Promise<void> {
  if (kind === 'none' || kind === 'environment') return;
  const { get, list, change } = PROVIDERS[kind].open(context);
  if (!change) return void (await list?.());
  await change((secrets) => secrets.set(PROBE, PROBE));
  const found = await get(PROBE);
  await change((secrets) => secrets.delete(PROBE));
  if (found !== PROBE) {
    throw new SkepError('secrets/damaged', {
      message: `the ${kind} provider does not keep what it is given`,
    });
  }
}

export const secretResetKeyring = defineCommand({
  usage: 'skep secret reset-keyring [flags]',
  summary: 'Forget the password of the encrypted store that the keyring holds',
  description: [
    'The store stays. It is opened again with its password; where Skep has made that itself, nobody else knows it.',
  ],
  settings: [
    ...settingsOf({ group: 'Safety' }, [
      flag('bool', 'yes', 'Forget it without a question', { short: 'y', default: false }),
    ]),
    ...commonSettings,
  ],
  async run({ values }, context) {
    const { places, confirm, terminal } = context;
    if (existsSync(places.secretsFile) && !values.yes) {
      const question = `Forget the password of ${places.secretsFile}? Whoever does not know it loses the secrets in it.`;
      if (!confirm || !(await confirm(question))) {
        throw new SkepError('run/cancelled', {
          message: 'the password is not forgotten: the secrets could be lost with it',
          hint: 'to forget it all the same, add --yes',
        });
      }
    }
    const held = await forgetPassword(context);
    terminal.out(
      held.length === 0
        ? 'No keyring holds a password\n'
        : `The password is forgotten in ${held.join(', ')}\n`,
    );
  },
});
