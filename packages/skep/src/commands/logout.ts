import { createSignInFetch } from '@skep/auth/sign-in/sign-in-fetch.ts';
import { signOut } from '@skep/auth/sign-in/sign-out.ts';
import type { KeptSignIn } from '@skep/auth/sign-in/port.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { isAt, shownServer, splitAddress } from '../account/registry-address.ts';
import { signInOfRegistry } from '../account/tokens.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import type { Context } from '../cli/context.ts';
import { loadAppConfig } from '../config/app-config.ts';
import { signInStore } from '../secrets/sign-in-store.ts';
import { parseHttpUrl } from '@skep/core/fetch/http-url.ts';

export const logout = defineCommand({
  usage: 'skep logout [flags] [ADDRESS]',
  summary: 'Sign out of a registry',
  description: [
    'What proves who you are is forgotten here, and withdrawn at the identity provider where it takes that. The registry stays the one in use.',
  ],
  positionals: [{ name: 'ADDRESS' }],
  settings: [...commonSettings],
  async run({ positionals: [given] }, context) {
    const { registryAuthServer } = await loadAppConfig(context.places);
    const url = given === undefined ? undefined : parseHttpUrl(given);
    const isThat =
      registryAuthServer !== undefined && (url === undefined || isAt(url.href, registryAuthServer));
    const server = isThat ? registryAuthServer : url === undefined ? undefined : splitAddress(url).server;
    if (server === undefined) {
      throw new SkepError('usage/missing-argument', {
        message: given === undefined ? 'you are signed in nowhere' : 'that is no address',
        hint: 'give the address of a registry',
      });
    }
    const { terminal, signal } = context;
    const shown = printable(shownServer(server));
    const before = await forget(signInOfRegistry(server), context);
    if (before === undefined) return terminal.out(`Nobody was signed in to ${shown}\n`);
    terminal.out(`Signed out of ${shown}\n`);
    const fetch = createSignInFetch();
    try {
      if (await signOut(before, { fetch, log: silentLog, signal })) return;
      terminal.err('Note: the identity provider did not withdraw every token; what it left ends by itself\n');
    } finally {
      fetch.close();
    }
  },
});

/** Removes what is kept, and gives it. Where nothing is, nobody is asked for the password of the secrets. */
async function forget(key: string, context: Context): Promise<KeptSignIn | undefined> {
  const store = signInStore(context);
  if ((await store.read(key)) === undefined) return undefined;
  const forgotten: KeptSignIn[] = [];
  await store.change(key, async (kept) => {
    if (kept !== undefined) forgotten.push(kept);
    return undefined;
  });
  return forgotten[0];
}
