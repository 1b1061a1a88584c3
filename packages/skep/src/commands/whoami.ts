import { SkepError } from '@skep/core/errors/skep-error.ts';
import { askAccount } from '../account/account.ts';
import { openRegistryServer } from '../account/ask-registry.ts';
import { isAt, shownServer, splitAddress } from '../account/registry-address.ts';
import { serversSignedInTo } from '../account/registry-in-use.ts';
import { tokensFor } from '../account/tokens.ts';
import { commonSettings, defineCommand, formatSettings } from '../cli/command.ts';
import type { Context } from '../cli/context.ts';
import { loadAppConfig } from '../config/app-config.ts';
import { toFacts } from '../print/table.ts';
import { signInStore } from '../secrets/sign-in-store.ts';
import { toJsonText } from '../workloads/to-json.ts';

export const whoami = defineCommand({
  usage: 'skep whoami [flags]',
  summary: 'Show who you are at the registry in use, and which registries are there',
  settings: [...formatSettings, ...commonSettings],
  async run({ values }, context) {
    const config = await loadAppConfig(context.places);
    const { registryApiUrl, registryAuthServer, allowPrivateRegistryIp: allowPrivate } = config;
    const address = registryApiUrl ?? registryAuthServer;
    const tokens = address === undefined ? undefined : await tokensFor(address, config, context);
    if (address === undefined || tokens === undefined) {
      throw new SkepError('auth/not-signed-in', {
        message: 'you are signed in as nobody',
        hint: await nextStep(context),
      });
    }
    const isThere = registryAuthServer !== undefined && isAt(address, registryAuthServer);
    const { server, name: inUse } = splitAddress(new URL(address));
    const at = isThere ? registryAuthServer : server;
    const registry = openRegistryServer({
      server: at,
      tokens,
      allowPrivate,
      version: context.program.version,
    });
    const { terminal, signal } = context;
    try {
      const { subject, roles, registries } = await askAccount(registry, signal);
      if (values.format === 'json') {
        const all = registries?.map((name) => ({ name, in_use: name === inUse })) ?? null;
        return terminal.out(toJsonText({ server: at, subject: subject ?? null, roles, registries: all }));
      }
      const shown = registries?.map((name) => (name === inUse ? `${name} (in use)` : name)) ?? [];
      terminal.out(
        toFacts(
          [
            ['Server', shownServer(at)],
            ['Signed in as', subject === '' ? 'somebody without a name' : subject],
            ['Roles', roles.join(', ')],
            [
              'Registries',
              registries === undefined ? undefined : shown.join(', ') || 'none that you may see',
            ],
            ['By', tokens.proof === 'file' ? 'the token of SKEP_TOKEN_FILE' : undefined],
          ],
          terminal,
        ),
      );
    } finally {
      registry.close();
    }
  },
});

/** Nobody is asked for the password of the secrets to be told this. */
async function nextStep({ ask: _nobody, ...around }: Context): Promise<string> {
  const [other] = await serversSignedInTo(signInStore(around)).catch(() => []);
  if (other === undefined) return 'sign in with skep login ADDRESS';
  return `you are signed in to ${other}: use it with skep config set-registry ${other}`;
}
