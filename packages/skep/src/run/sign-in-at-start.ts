import { printable } from '@skep/core/terminal/printable.ts';
import type { Demand } from '@skep/auth/sign-in/probe.ts';
import type { Context } from '../cli/context.ts';
import { demandOf, dropSignIn, savedAuth, signInElsewhere } from '../cli/sign-in-elsewhere.ts';
import type { RemoteSignIn } from '../plan/plan.ts';
import type { Progress } from '../print/progress.ts';
import { clientSecretIn, type RemoteAuthConfig } from '../run-config/remote-auth.ts';
import { REMOTE_CLIENT_SECRET } from '../secrets/reference.ts';

export interface SignInWork {
  readonly context: Context;
  readonly progress: Progress;
  /** Variables of the workload, secret ones among them. */
  readonly env: Readonly<Record<string, string>>;
}

export interface SignedInAtStart {
  /** What is saved of it. */
  readonly auth: RemoteAuthConfig;
  readonly undo: () => Promise<void>;
}

const WANTED: Demand = { kind: 'sign-in', challenge: undefined };

/** Why nobody signs in to a server that may want it. */
function warningOf(demand: Exclude<Demand, { kind: 'sign-in' }>, url: string): string | undefined {
  const { host } = new URL(url);
  if (demand.kind === 'unknown')
    return `Warning: cannot tell whether ${host} wants a sign-in: ${demand.reason}`;
  if (demand.kind === 'none') return undefined;
  const schemes = demand.schemes.join(' or ');
  return `Warning: ${host} asks for ${schemes} authentication, which no sign-in gives; keep the header with skep secret set NAME, and run it with --remote-forward-headers-secret Authorization=NAME`;
}

/**
 * Signs in to the server of a workload that is being made, and keeps what comes of it; undefined where
 * the server wants nobody to sign in. A person may take long, so this comes last of what can fail. Fails as `signInElsewhere`.
 */
export async function signInAtStart(
  name: string,
  { auth, isWanted, clientSecret, ...at }: RemoteSignIn,
  { context, progress, env }: SignInWork,
): Promise<SignedInAtStart | undefined> {
  const demand = isWanted ? WANTED : await demandOf(at, context);
  if (demand.kind !== 'sign-in') {
    const warning = warningOf(demand, at.url);
    if (warning !== undefined) {
      progress.end();
      context.terminal.err(`${printable(warning)}\n`);
    }
    return undefined;
  }
  progress.end();
  const secret = clientSecret ?? env[REMOTE_CLIENT_SECRET] ?? (await clientSecretIn(auth));
  const who = { ...at, name, auth, clientSecret: secret };
  const way = auth.client_credentials ? 'client-credentials' : 'browser';
  const kept = await signInElsewhere(who, { way, challenge: demand.challenge }, context);
  context.terminal.err(`${printable(`Signed in to ${new URL(at.url).host}`)}\n`);
  return { auth: savedAuth(auth, kept, secret), undo: () => dropSignIn(who, context) };
}
