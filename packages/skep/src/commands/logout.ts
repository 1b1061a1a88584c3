import { createSignInFetch } from '@skep/auth/sign-in/sign-in-fetch.ts';
import { signOut } from '@skep/auth/sign-in/sign-out.ts';
import type { KeptSignIn, SignInStore } from '@skep/auth/sign-in/port.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { isAt, registryAddressIn, shownServer, splitAddress } from '../account/registry-address.ts';
import { serversSignedInTo } from '../account/registry-in-use.ts';
import { signInOfRegistry, tokenFileFor } from '../account/tokens.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import { loadAppConfig } from '../config/app-config.ts';
import { signInStore } from '../secrets/sign-in-store.ts';

export const logout = defineCommand({
  usage: 'skep logout [flags] [ADDRESS]',
  summary: 'Sign out of a registry',
  description: [
    'What proves who you are is forgotten here, and withdrawn at the identity provider where it takes that. The registry stays the one in use.',
  ],
  positionals: [{ name: 'ADDRESS' }],
  settings: [...commonSettings],
  async run({ positionals: [given] }, context) {
    const config = await loadAppConfig(context.places);
    const store = signInStore(context);
    const signedInTo = await serversSignedInTo(store);
    const server = serverToLeave(given, config.registryAuthServer, signedInTo);
    const { terminal, signal } = context;
    const shown = printable(shownServer(server));
    const before = await forget(signInOfRegistry(server), store);
    terminal.out(before === undefined ? `Nobody was signed in to ${shown}\n` : `Signed out of ${shown}\n`);
    const isWithdrawn = before === undefined || (await withdraw(before, signal));
    if (!isWithdrawn)
      terminal.err('Note: the identity provider did not withdraw every token; what it left ends by itself\n');
    const others = signedInTo.filter((one) => one !== server);
    if (others.length > 0)
      terminal.err(`You are still signed in to ${printable(others.join(', '))}: skep logout ADDRESS\n`);
    if (tokenFileFor(server, config, context.env) !== undefined)
      terminal.err(`Note: SKEP_TOKEN_FILE is set, and its token is still shown to ${shown}\n`);
  },
});

/** The server that is named, or used; where none is used, the only one. Fails with `usage/missing-argument`, and as `registryAddressIn`. */
function serverToLeave(
  given: string | undefined,
  used: string | undefined,
  signedInTo: readonly string[],
): string {
  if (given !== undefined) {
    const { href } = registryAddressIn(given);
    const known = [...signedInTo, ...(used === undefined ? [] : [used])].filter((one) => isAt(href, one));
    return known.toSorted((a, b) => b.length - a.length)[0] ?? splitAddress(new URL(href)).server;
  }
  const [only, ...more] = signedInTo;
  if (used !== undefined) return used;
  if (only !== undefined && more.length === 0) return only;
  throw new SkepError('usage/missing-argument', {
    message:
      only === undefined
        ? 'you are signed in nowhere'
        : `of which? you are signed in to ${signedInTo.join(', ')}`,
    hint: only === undefined ? 'there is nothing to sign out of' : `name one: skep logout ${only}`,
  });
}

async function withdraw(kept: KeptSignIn, signal: AbortSignal): Promise<boolean> {
  const fetch = createSignInFetch();
  try {
    return await signOut(kept, { fetch, log: silentLog, signal });
  } finally {
    fetch.close();
  }
}

/** Removes what is kept, and gives it. */
async function forget(key: string, store: SignInStore): Promise<KeptSignIn | undefined> {
  if ((await store.read(key)) === undefined) return undefined;
  const forgotten: KeptSignIn[] = [];
  await store.change(key, async (kept) => {
    if (kept !== undefined) forgotten.push(kept);
    return undefined;
  });
  return forgotten[0];
}
