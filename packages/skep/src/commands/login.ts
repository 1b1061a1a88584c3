import { resolve } from 'node:path';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { readText } from '@skep/core/files/read-limited.ts';
import { redactUrl } from '@skep/core/log/redact.ts';
import { flag, settingsOf, type Values } from '@skep/core/settings/define-settings.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import {
  isAt,
  refuseClear,
  registryAddressIn,
  registryUrl,
  shownServer,
  splitAddress,
} from '../account/registry-address.ts';
import { accountKeys, saidIn } from '../account/registry-in-use.ts';
import { requireProtected } from '../account/signed-client.ts';
import { tokenFileFor } from '../account/tokens.ts';
import { signInToRegistry, type LoginWish, type SignedIn } from '../account/sign-in-to-registry.ts';
import { noRegistry } from '../catalog/registry-kind.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import type { Context } from '../cli/context.ts';
import { personAt } from '../cli/person.ts';
import { loadAppConfig, updateAppConfig, type AppConfig } from '../config/app-config.ts';

const MAX_SECRET_BYTES = 64 * 1024;

const loginSettings = [
  ...settingsOf({ group: 'How' }, [
    flag('bool', 'device', 'Type a code on another machine, where this one has no browser', {
      default: false,
    }),
    flag('bool', 'skip-browser', 'Print the address, and open no browser', { default: false }),
    flag('path', 'client-secret-file', 'Sign in as a service: a file with the secret of --client-id', {
      needs: ['clientId'],
    }),
    flag('duration', 'timeout', 'How long you may take', {
      min: 1_000,
      defaultText: '5m, or as long as a code is good',
    }),
    flag('int', 'callback-port', 'Port where the browser answers', {
      min: 1024,
      max: 65_535,
      defaultText: '8666',
    }),
  ]),
  ...settingsOf({ group: 'What the registry says, unless you do' }, [
    flag('string', 'issuer', 'Identity provider', { placeholder: 'url' }),
    flag('string', 'client-id', 'What Skep is called there', { placeholder: 'id' }),
    flag('string', 'audience', 'What the token is for', { placeholder: 'audience' }),
    flag('strings', 'scopes', 'What is asked for', { placeholder: 'scopes' }),
  ]),
  ...settingsOf({ group: 'Safety' }, [
    flag(
      'bool',
      'allow-private-ip',
      'The registry may be at a private address, or plain http on this machine',
      {
        default: false,
      },
    ),
  ]),
  ...commonSettings,
] as const;

export const login = defineCommand({
  usage: 'skep login [flags] [ADDRESS] [REGISTRY]',
  summary: 'Sign in to a registry, and look for servers there from now on',
  description: [
    'The address is all that is needed: the registry says how one signs in. Without it, you sign in again where you were. What proves who you are is kept among the secrets, and goes to this registry alone.',
    'Pipelines need no sign-in: SKEP_TOKEN_FILE names a file with a token.',
  ],
  examples: [
    { command: 'skep login https://mcp.example.com', what: 'In the browser' },
    { command: 'skep login https://mcp.example.com data', what: 'And use the registry data there' },
    { command: 'skep login --device https://mcp.example.com', what: 'From a machine without a browser' },
  ],
  positionals: [{ name: 'ADDRESS' }, { name: 'REGISTRY' }],
  settings: loginSettings,
  async run({ values, positionals: [given, named] }, context) {
    const config = await loadAppConfig(context.places);
    const address = addressIn(given, config);
    const known = isAt(address.href, config.registryAuthServer ?? 'none:');
    const allowPrivate = values.allowPrivateIp || (known && config.allowPrivateRegistryIp);
    // First, because nothing allows that.
    requireProtected(address.href);
    refuseClear(address, 'signing in', allowPrivate);
    const wish = await wishOf(values, { allowPrivate, ...(known && { config }) }, context);
    const signedIn = await signInToRegistry(address, wish, aroundOf(values, context)).catch(
      (error: unknown) => {
        throw withNextStep(error, address);
      },
    );
    const isAgain = given === undefined;
    // Another command may have changed it while the person signed in.
    const now = await loadAppConfig(context.places);
    await choose(signedIn, { address, named, config: now, allowPrivate, isAgain }, context);
  },
});

type LoginValues = Values<typeof loginSettings>;

function aroundOf({ skipBrowser }: LoginValues, context: Context): Parameters<typeof signInToRegistry>[2] {
  const { ask } = context;
  return {
    ...context,
    person: personAt(context, { skipBrowser }),
    ...(ask && {
      choose: (name: string, choices: readonly string[]) =>
        ask({ name, required: true, secret: false, choices }),
    }),
  };
}

/** Fails with `usage/*`. */
function addressIn(given: string | undefined, config: AppConfig): URL {
  const text = given ?? config.registryAuthServer ?? config.registryApiUrl;
  if (text === undefined) {
    throw new SkepError('usage/missing-argument', {
      message: 'which registry?',
      hint: 'give its address: skep login https://mcp.example.com',
    });
  }
  return registryAddressIn(text);
}

/** What flags say, else what was said before of the same provider. */
async function wishOf(
  values: LoginValues,
  { allowPrivate, config }: { readonly allowPrivate: boolean; readonly config?: AppConfig },
  { cwd }: Context,
): Promise<LoginWish> {
  const { clientSecretFile: file } = values;
  const secret =
    file === undefined
      ? undefined
      : (
          await readText(resolve(cwd, file), { maxBytes: MAX_SECRET_BYTES, what: 'client secret file' })
        ).trim();
  if (secret === '') {
    throw new SkepError('usage/invalid-value', {
      message: `the client secret file "${String(file)}" is empty`,
    });
  }
  const before = config === undefined ? {} : saidIn(config);
  const isOther = values.issuer !== undefined && values.issuer !== before.issuer;
  const said = isOther ? {} : before;
  const issuer = values.issuer ?? said.issuer;
  if (secret !== undefined && issuer === undefined) {
    throw new SkepError('usage/missing-argument', {
      message:
        '--client-secret-file needs --issuer: a registry alone does not choose who is shown the secret',
      hint: 'name the identity provider that knows the client',
    });
  }
  return {
    way: secret !== undefined ? 'client-credentials' : values.device ? 'device' : 'browser',
    issuer,
    clientId: values.clientId ?? said.clientId,
    clientSecret: secret,
    audience: values.audience ?? said.audience,
    scopes: values.scopes ?? said.scopes,
    agreed: before.agreed,
    callbackPort: values.callbackPort,
    timeoutMs: values.timeout,
    allowPrivate,
  };
}

/** Flags that help, by what went wrong. */
const NEXT: Partial<Readonly<Record<SkepError['code'], string>>> = {
  'auth/client-needed': 'register one there, and give its id with --client-id',
  'auth/client-refused': 'check --client-id and --client-secret-file',
  'auth/callback-port': 'end what uses it, or give another with --callback-port',
  'auth/sign-in-timeout': 'sign in again, and give more time with --timeout',
};

function withNextStep(error: unknown, address: URL): unknown {
  const hint = error instanceof SkepError ? NEXT[error.code] : undefined;
  if (error instanceof SkepError && hint !== undefined)
    return new SkepError(error.code, { message: error.message, hint, cause: error });
  if (!hasCode(error, 'auth/no-sign-in')) return error;
  return new SkepError(error.code, {
    message: `${shownServer(address.href)} does not say how one signs in`,
    hint: `a registry without sign-in is chosen with skep config set-registry ${redactUrl(address.href)}; else say it: --issuer, --client-id`,
    cause: error,
  });
}

interface Choice {
  readonly address: URL;
  readonly named: string | undefined;
  /** Whether no address was given: the registry in use stays so. */
  readonly isAgain: boolean;
  readonly config: AppConfig;
  readonly allowPrivate: boolean;
}

/** Says who one is now, and takes a registry into use: the one that is named, the only one, or the one that is chosen. */
async function choose(
  { server, login: how, account }: SignedIn,
  { address, named, config, allowPrivate, isAgain }: Choice,
  { terminal, ask, places, env }: Context,
): Promise<void> {
  const { subject, registries } = account;
  const as = subject === undefined || subject === '' ? '' : ` as ${subject}`;
  terminal.out(`Signed in to ${printable(shownServer(server) + as)}\n`);
  if (tokenFileFor(server, { registryAuthServer: server }, env) !== undefined)
    terminal.err('Note: SKEP_TOKEN_FILE is set, and its token is shown there instead of this sign-in\n');
  const keys = {
    allow_private_registry_ip: allowPrivate ? true : undefined,
    ...accountKeys(server, how),
  };
  // Until a registry there is chosen, so that whoami and logout know it; another one in use stays as it is.
  if (config.registryAuthServer === server || !hasCatalogue(config)) await updateAppConfig(places, keys);
  const asked = named ?? nameIn(address, server);
  if (asked !== undefined && registries !== undefined && !registries.includes(asked)) {
    throw new SkepError('registry/not-found', {
      message: `${shownServer(server)} has no registry "${asked}" for you`,
      hint: registries.length === 0 ? 'you may see none there' : `there are: ${registries.join(', ')}`,
    });
  }
  const before = registries?.find((name) => config.registryApiUrl === registryUrl(server, name));
  const [first, second] = registries ?? [];
  const wanted =
    asked ??
    (isAgain ? before : undefined) ??
    (second === undefined ? first : undefined) ??
    (registries === undefined || registries.length === 0
      ? undefined
      : await ask?.({ name: 'Registry', required: true, secret: false, choices: registries })) ??
    before;
  if (registries !== undefined && wanted === undefined) {
    terminal.err(
      registries.length === 0
        ? `There is no registry that you may see\n`
        : `There are ${printable(registries.join(', '))}; choose one with skep config set-registry ${registryUrl(server, first ?? '')}\n`,
    );
    return;
  }
  const { registryApiUrl: inUse = 'none:' } = config;
  const whole = isAgain && isAt(inUse, server) ? inUse : address.href.replace(/\/+$/u, '');
  await updateAppConfig(places, {
    ...noRegistry,
    registry_api_url: wanted === undefined ? whole : registryUrl(server, wanted),
    ...keys,
  });
  const others = (registries ?? []).filter((name) => name !== wanted);
  const beside = others.length === 0 ? '' : `; also there: ${others.join(', ')}`;
  terminal.out(`Servers are now looked up in ${printable((wanted ?? shownServer(server)) + beside)}\n`);
}

function hasCatalogue({ registryApiUrl, registryUrl: file, localRegistryPath }: AppConfig): boolean {
  return [registryApiUrl, file, localRegistryPath].some((one) => one !== undefined);
}

/** `NAME` of `https://host/registry/NAME`, and of the short form `https://host/NAME`. */
function nameIn(address: URL, server: string): string | undefined {
  const { name } = splitAddress(address);
  if (name !== undefined) return name;
  const [, below] =
    /^\/([^/]+)\/?$/u.exec(address.pathname.slice(new URL(server).pathname.replace(/\/+$/u, '').length)) ??
    [];
  return below;
}
