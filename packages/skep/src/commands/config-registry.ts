import { access, constants } from 'node:fs/promises';
import { errnoOf } from '@skep/core/files/errno.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { redactUrl } from '@skep/core/log/redact.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import type { Client } from '@skep/core/fetch/client.ts';
import { NO_ACCOUNT, type AccountKeys } from '../account/no-account.ts';
import type { SomeLogin } from '../account/registry-in-use.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import type { Context } from '../cli/context.ts';
import { parseHttpUrl } from '@skep/core/fetch/http-url.ts';
import { catalogOf } from '../catalog/open-catalog.ts';
import { loadAppConfig, updateAppConfig } from '../config/app-config.ts';
import { detectRegistry, noRegistry } from '../catalog/registry-kind.ts';

const PROBE_MS = 5_000;
const MAX_BYTES = 100 * 1024 * 1024;

export const setRegistry = defineCommand({
  usage: 'skep config set-registry [flags] ADDRESS|FILE',
  summary: 'Use another catalogue: a registry address, or a file',
  description: [
    'An address is looked at once. Of a server with several registries one has to be named; they are listed. How one signs in may be said here; nobody is asked, and skep login signs in.',
  ],
  examples: [
    {
      command: 'skep config set-registry https://registry.example.com',
      what: 'Anything that speaks the MCP Registry API',
    },
    { command: 'skep config set-registry ./catalogue.json', what: 'A file' },
  ],
  positionals: [{ name: 'ADDRESS', required: true }],
  settings: [
    ...settingsOf({ group: 'Sign-in' }, [
      flag('string', 'issuer', 'Identity provider', { placeholder: 'url' }),
      flag('string', 'client-id', 'What Skep is called there', { placeholder: 'id', needs: ['issuer'] }),
      flag('string', 'audience', 'What tokens are asked for', { placeholder: 'audience', needs: ['issuer'] }),
      flag('strings', 'scopes', 'Scopes that are asked for', { placeholder: 'scopes', needs: ['issuer'] }),
    ]),
    ...settingsOf({ group: 'Safety' }, [
      flag('bool', 'allow-private-ip', 'The catalogue may be at a private address or plain http', {
        default: false,
      }),
    ]),
    ...commonSettings,
  ],
  async run({ values, positionals: [address = ''] }, context) {
    const { places, cwd, program, signal, terminal } = context;
    const allowPrivate = values.allowPrivateIp;
    const { issuer, clientId, audience, scopes } = values;
    const account = await accountAt(address, { issuer, clientId, audience, scopes }, context);
    const client = async (what: 'file' | 'registry'): Promise<Client> => {
      const { createClient } = await import('@skep/core/fetch/client.ts');
      const userAgent = `skep/${program.version}`;
      const plain = createClient({
        timeoutMs: PROBE_MS,
        maxBytes: MAX_BYTES,
        allowPrivate,
        userAgent,
        tellWhatWasSaid: true,
      });
      return account === undefined || what === 'file' ? plain : account.sign(plain);
    };
    const { choice, wantsSignIn } = await detectRegistry(address, { cwd, allowPrivate, client, signal });
    await updateAppConfig(places, {
      ...choice,
      allow_private_registry_ip: allowPrivate ? true : undefined,
      ...(account?.keys ?? NO_ACCOUNT),
    });
    terminal.err(`Servers are now looked up in ${redactUrl(choice.registry_api_url ?? address)}\n`);
    if (wantsSignIn)
      terminal.err(`It wants to know who asks: sign in with skep login ${redactUrl(address)}\n`);
  },
});

/** How requests to the address say who asks; undefined where nothing says that they do. */
async function accountAt(
  address: string,
  how: SomeLogin,
  context: Context,
): Promise<{ readonly keys: AccountKeys; readonly sign: (plain: Client) => Promise<Client> } | undefined> {
  const url = parseHttpUrl(address);
  if (url === undefined) return undefined;
  const { splitAddress } = await import('../account/registry-address.ts');
  const { accountKeys, keptLogin } = await import('../account/registry-in-use.ts');
  const { tokensFor } = await import('../account/tokens.ts');
  const { server } = splitAddress(url);
  const known = how.issuer === undefined ? await keptLogin(server, context) : how;
  const registryAuthServer = known === undefined ? undefined : server;
  return {
    keys: known === undefined ? NO_ACCOUNT : accountKeys(server, known),
    sign: async (plain) => {
      const tokens = await tokensFor(address, { registryAuthServer }, context);
      if (tokens === undefined) return plain;
      const { signedClient } = await import('../account/signed-client.ts');
      return signedClient(plain, server, tokens, 'when asked');
    },
  };
}

export const getRegistry = defineCommand({
  usage: 'skep config get-registry',
  summary: 'Show which catalogue is used',
  settings: [...commonSettings],
  async run(_input, context) {
    const { kind, location } = await catalogOf(context);
    const { registryAuthServer } = await loadAppConfig(context.places);
    const account = registryAuthServer === undefined ? '' : '; who you are there: skep whoami';
    context.terminal.out(
      location === '' ? 'built-in catalogue\n' : `${redactUrl(location)} (${kind}${account})\n`,
    );
    if (kind !== 'local file') return;
    const why = await access(location, constants.R_OK).then(() => undefined, errnoOf);
    if (why !== undefined)
      context.terminal.err(`Warning: the catalogue file "${printable(location)}" cannot be read: ${why}\n`);
  },
});

export const unsetRegistry = defineCommand({
  usage: 'skep config unset-registry',
  summary: 'Go back to the built-in catalogue',
  settings: [...commonSettings],
  async run(_input, { places }) {
    await updateAppConfig(places, { ...noRegistry, ...NO_ACCOUNT, allow_private_registry_ip: undefined });
  },
});
