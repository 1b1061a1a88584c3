import { isDeepStrictEqual } from 'node:util';
import type { KeptSignIn, SignInStore, SignInWay } from '@skep/auth/sign-in/port.ts';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import type { Lock } from '@skep/core/files/lock.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { formatDuration } from '@skep/core/time/duration.ts';
import { commonSettings, defineCommand, formatSettings } from '../cli/command.ts';
import type { Context } from '../cli/context.ts';
import { loadAppConfig } from '../config/app-config.ts';
import { savedAuth, signInElsewhere, signOutElsewhere } from '../cli/sign-in-elsewhere.ts';
import { secretsFor } from '../plan/secrets-for.ts';
import { openProgress } from '../print/progress.ts';
import { toTable } from '../print/table.ts';
import { loadRunConfig, saveRunConfig, savedNames } from '../run-config/file.ts';
import { referencesOf } from '../run-config/header-forward.ts';
import { clientSecretIn, hasBearerToken } from '../run-config/remote-auth.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import { proxySecretOf } from '../run-config/sign-in.ts';
import { surroundingsOf } from '../run/carry-out.ts';
import { refuseForeground, swapConfig } from '../run/swap-config.ts';
import { REMOTE_CLIENT_SECRET } from '../secrets/reference.ts';
import { signInOfWorkload, signInStore } from '../secrets/sign-in-store.ts';
import { readStatus } from '../supervisor/state.ts';
import { lockName } from '../workloads/name-lock.ts';
import { toJsonText } from '../workloads/to-json.ts';

type Remote = RunConfig & { readonly remote_url: string };

const positionals = [{ name: 'NAME', required: true }];

export const authLogin = defineCommand({
  usage: 'skep auth login [flags] NAME',
  summary: 'Sign in to the server of a workload that runs elsewhere',
  description: [
    'The proxy of the workload shows the server what comes of it within ten seconds, and refreshes it; the workload need not be started again. What is kept is sealed with your secrets.',
  ],
  examples: [
    { command: 'skep auth login notes', what: 'With the browser of this machine' },
    { command: 'skep auth login --device notes', what: 'With a code that is typed on any machine' },
    { command: 'skep auth login --scopes notes.write notes', what: 'Asks for other scopes than before' },
  ],
  positionals,
  settings: [
    ...settingsOf({ group: 'Sign-in' }, [
      flag('bool', 'device', 'Show a code to type on another machine (RFC 8628)', {
        default: false,
        excludes: ['clientCredentials'],
      }),
      flag('bool', 'client-credentials', 'Sign in the client itself, for services without a person', {
        default: false,
      }),
      flag('bool', 'skip-browser', 'Print the address instead of opening a browser', { default: false }),
      flag('strings', 'scopes', 'Scopes to ask for, in place of those of before', { placeholder: 'a,b' }),
      flag('duration', 'timeout', 'How long signing in may take', {
        placeholder: 'duration',
        defaultText: 'that of the workload, or 30s',
        min: 1,
      }),
    ]),
    ...commonSettings,
  ],
  async run({ values, positionals: [name = ''] }, context) {
    const config = await remoteOf(name, context);
    if (hasBearerToken(config)) {
      throw new SkepError('usage/conflict', {
        message: `"${name}" shows its server a bearer token, so nobody signs in`,
        hint: `remove it with skep rm ${name}, and run it without the token`,
      });
    }
    // Its proxy looks for sign-ins only where it knows that there may be one.
    if (config.remote_auth_config === undefined) await refuseForeground(name, context);
    const { scopes, timeout, skipBrowser } = values;
    const auth = {
      ...config.remote_auth_config,
      ...(scopes && { scopes }),
      ...(skipBrowser && { skip_browser: true }),
      ...(timeout !== undefined && { timeout: formatDuration(timeout) }),
    };
    const way: SignInWay = values.device
      ? 'device'
      : values.clientCredentials || auth.client_credentials
        ? 'client-credentials'
        : 'browser';
    const clientSecret = await clientSecretOf(config, context);
    const { mayBePrivateOf } = await import('../plan/plan-remote-sign-in.ts');
    const mayBePrivate = await mayBePrivateOf(config, await loadAppConfig(context.places));
    const at = {
      name,
      url: config.remote_url,
      auth,
      clientSecret,
      caPath: config.skep_ca_bundle,
      mayBePrivate,
    };
    const held: Lock[] = [];
    // The person may have taken a while, and other commands meanwhile.
    const beforeKept = async (): Promise<void> => {
      held.push(await lockName(name, { ...context, waitMs: MEANWHILE_MS }));
      await sameServer(config, context);
    };
    try {
      const kept = await signInElsewhere(at, { way, beforeKept }, context);
      const host = new URL(config.remote_url).host;
      context.terminal.out(`${printable(`Signed in to ${host}${asWhom(kept)}`)}\n`);
      const now = await sameServer(config, context);
      const saved = { ...now.remote_auth_config, ...(scopes && { scopes }) };
      const next = { ...now, remote_auth_config: savedAuth(saved, kept, clientSecret) };
      if (now.remote_auth_config === undefined) await restarted(next, now, context);
      else if (!isDeepStrictEqual(next, now)) await saveRunConfig(context.places, next);
    } finally {
      for (const lock of held) lock.release();
    }
  },
});

/** Commands that hold a workload's name for longer wait for people themselves. */
const MEANWHILE_MS = 10_000;

/** As it is saved now. Fails with `workload/not-found`, and with `run/cancelled` where it is another server's by now. */
async function sameServer({ name, remote_url }: Remote, context: Context): Promise<Remote> {
  const now = await remoteOf(name, context);
  if (now.remote_url === remote_url && !hasBearerToken(now)) return now;
  throw new SkepError('run/cancelled', {
    message: `${name} was changed by another command meanwhile`,
    hint: 'nothing of the sign-in is kept; try again',
  });
}

export const authLogout = defineCommand({
  usage: 'skep auth logout [flags] NAME',
  summary: 'Sign out of the server of a workload, and withdraw what was given for it',
  positionals,
  settings: [...commonSettings],
  async run({ positionals: [name = ''] }, context) {
    const config = await remoteOf(name, context);
    const { host } = new URL(config.remote_url);
    const { terminal } = context;
    const outcome = await signOutElsewhere({ name, caPath: config.skep_ca_bundle }, context);
    if (outcome === 'was-out') return terminal.out(`${printable(`Nobody was signed in to ${host}`)}\n`);
    if (outcome === 'kept-there')
      terminal.err(
        'Note: the authorization server did not withdraw every token; what it left ends by itself\n',
      );
    terminal.out(`${printable(`Signed out of ${host}`)}\n`);
    // Its proxy may still hold a token.
    await restarted(config, config, context);
  },
});

export const authStatus = defineCommand({
  usage: 'skep auth status [flags] [NAME]',
  summary: 'Say who is signed in to the servers of workloads that run elsewhere',
  positionals: [{ name: 'NAME' }],
  settings: [...formatSettings, ...commonSettings],
  async run({ values, positionals: [name] }, context) {
    const configs = name === undefined ? await remotes(context) : [await remoteOf(name, context)];
    const store = signInStore(context);
    const views = await Promise.all(configs.map((config) => viewOf(config, store, context)));
    const { terminal } = context;
    if (values.format === 'json') return terminal.out(toJsonText(views));
    if (views.length === 0) return terminal.out('No server elsewhere is signed in to\n');
    const rows = views.map(({ name: of, server, state, as, issuer, expires, next }) =>
      [of, server, state, as, issuer, expires, next].map((one) => one ?? ''),
    );
    return terminal.out(toTable(['NAME', 'SERVER', 'STATE', 'AS', 'ISSUER', 'EXPIRES', 'NEXT'], rows));
  },
});

/** What is told of one; nothing of it is a secret. */
interface SignInView {
  readonly name: string;
  readonly server: string;
  readonly state:
    | 'signed in'
    | 'retrying'
    | 'ended'
    | 'signed out'
    | 'bearer token'
    | 'token refused'
    | 'unreadable';
  readonly as?: string;
  readonly issuer?: string;
  readonly scopes?: readonly string[];
  /** Scopes that the server has asked for since, in words of its own; the next login asks for them. */
  readonly wants?: readonly string[];
  /** Of the access token. */
  readonly expires?: string;
  /** A newer one is asked for by itself. */
  readonly refreshes?: boolean;
  /** What a person does now. */
  readonly next?: string;
}

async function viewOf(
  config: Remote,
  store: Pick<SignInStore, 'read'>,
  context: Context,
): Promise<SignInView> {
  const { name, remote_url: url } = config;
  const server = new URL(url).host;
  const status = (await readStatus(context.places, name).catch(() => undefined))?.status;
  if (hasBearerToken(config))
    return { name, server, state: status === 'unauthenticated' ? 'token refused' : 'bearer token' };
  const login = `skep auth login ${name}`;
  // The others can be told of all the same.
  const kept = await store.read(signInOfWorkload(name)).catch((error: unknown) => {
    if (hasCode(error, 'secrets/damaged')) return 'unreadable' as const;
    throw error;
  });
  if (kept === 'unreadable') return { name, server, state: kept, next: login };
  if (kept === undefined) return { name, server, state: 'signed out', next: login };
  const { subject, issuer, expiresAt = 0, refreshToken, scopes, wanted = [] } = kept;
  const isRefused = status === 'unauthenticated';
  const expires = dateText(kept.expiresAt);
  const refused = expiresAt > context.clock.now() ? 'token refused' : 'ended';
  const state = isRefused ? refused : status === 'auth_retrying' ? 'retrying' : 'signed in';
  return {
    name,
    server,
    state,
    ...(subject === undefined ? {} : { as: subject }),
    issuer,
    scopes,
    ...(wanted.length === 0 ? {} : { wants: wanted }),
    ...(expires === undefined ? {} : { expires }),
    refreshes: refreshToken !== undefined,
    ...(isRefused || wanted.length > 0 ? { next: login } : {}),
  };
}

/** Undefined for what is no date: a server said it. */
function dateText(at: number | undefined): string | undefined {
  const date = at === undefined ? undefined : new Date(at);
  return date === undefined || Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}

async function remotes({ places }: Context): Promise<readonly Remote[]> {
  const found = await Promise.all(
    (await savedNames(places)).map((name) => loadRunConfig(places, name).catch(() => undefined)),
  );
  return found.flatMap((one) =>
    one?.remote_url !== undefined && one.remote_auth_config !== undefined
      ? [{ ...one, remote_url: one.remote_url }]
      : [],
  );
}

/** Fails with `workload/not-found`, and for a server that runs here. */
async function remoteOf(name: string, { places }: Context): Promise<Remote> {
  const config = await loadRunConfig(places, name);
  const { remote_url } = config;
  if (remote_url !== undefined) return { ...config, remote_url };
  throw new SkepError('usage/conflict', {
    message: `"${name}" runs here, so there is nobody to sign in with`,
    hint: 'give the name of a workload that runs elsewhere; see skep list --all',
  });
}

async function clientSecretOf(config: Remote, context: Context): Promise<string | undefined> {
  const lookUp = () => secretsFor(referencesOf(config), surroundingsOf(context));
  const kept = await proxySecretOf(REMOTE_CLIENT_SECRET, config, lookUp);
  return kept ?? clientSecretIn(config.remote_auth_config ?? {});
}

const asWhom = ({ subject }: KeptSignIn): string => (subject === undefined ? '' : ` as ${subject}`);

/** Where it runs; else it is saved. */
async function restarted(next: RunConfig, current: RunConfig, context: Context): Promise<void> {
  const { name } = next;
  const progress = openProgress(context.terminal);
  await swapConfig(next, current, {
    name,
    context,
    progress,
    failed: printable(`${name} runs as before`),
    stopped: printable(`${name} was stopped meanwhile`),
  });
}
