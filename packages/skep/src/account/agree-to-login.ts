import { createHash } from 'node:crypto';
import type { Terminal } from '@skep/core/command/terminal.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { printable } from '@skep/core/terminal/printable.ts';

import { shownServer } from './registry-address.ts';

/** What a person is to be asked for, where, and who is shown what that gives. */
interface LoginTerms {
  readonly server: string;
  readonly issuer: string;
  /** Absent where Skep registers itself. */
  readonly clientId?: string | undefined;
  readonly audience?: string | undefined;
  readonly scopes: readonly string[];
}

/** What of it the person said; the registry said the rest. */
interface SaidOfTerms {
  readonly issuer?: string | undefined;
  readonly audience?: string | undefined;
  readonly scopes?: readonly string[] | undefined;
  /** The mark of the terms that were agreed to before. */
  readonly agreed?: string | undefined;
}

interface Around {
  readonly terminal: Pick<Terminal, 'err'>;
  readonly confirm?: ((question: string) => Promise<boolean>) | undefined;
}

/**
 * Shows the terms of a sign-in and has a person agree once, before anybody signs in: whoever writes the document of a registry may
 * name an identity provider, a client and an audience whose tokens open something else (decision 0390). The mark of what was agreed
 * to. Fails with `auth/bad-metadata` where the registry itself names another address as audience or scope, with `auth/no-person`
 * where nobody can be asked and the person named no issuer, and with `run/cancelled` where the person does not agree.
 */
export async function agreeTo(
  terms: LoginTerms,
  said: SaidOfTerms,
  { terminal, confirm }: Around,
): Promise<string> {
  const { server, issuer, audience, scopes } = terms;
  if (said.audience === undefined && audience !== undefined) refuseElsewhere(audience, terms, '--audience');
  if (said.scopes === undefined) for (const scope of scopes) refuseElsewhere(scope, terms, '--scopes');
  const mark = markOf(terms);
  terminal.err(shownTerms(terms));
  if (mark === said.agreed || isSameOrigin(issuer, server)) return mark;
  const [host, at] = [shownServer(server), new URL(issuer).host];
  if (confirm === undefined) {
    if (said.issuer !== undefined) return mark;
    throw new SkepError('auth/no-person', {
      message: `${host} has you sign in at ${at}, and nobody can be asked whether that is right`,
      hint: 'name its identity provider with --issuer, as whoever runs it says; or sign in at a terminal',
    });
  }
  if (await confirm(`Sign in at ${at}, and show ${host} what that gives?`)) return mark;
  throw new SkepError('run/cancelled', {
    message: `you do not sign in at ${at}`,
    hint: 'nothing was changed',
  });
}

function shownTerms({ server, issuer, clientId, audience, scopes }: LoginTerms): string {
  const { origin, pathname } = new URL(issuer);
  const rows = [
    ['at', origin + (pathname === '/' ? '' : pathname)],
    ['as', clientId ?? 'a client that Skep registers'],
    ['for', audience],
    ['with', scopes.length === 0 ? undefined : scopes.join(' ')],
  ].flatMap(([name = '', value]) =>
    value === undefined ? [] : [`  ${name.padEnd(5)} ${printable(value)}\n`],
  );
  return `${printable(shownServer(server))} has you sign in, and is shown the token:\n${rows.join('')}`;
}

/** A token for another address would be good there, in the hands of this server. */
function refuseElsewhere(text: string, { server }: LoginTerms, flag: string): void {
  if (!/^https?:/iu.test(text) || isSameOrigin(text, server)) return;
  throw new SkepError('auth/bad-metadata', {
    message: `${shownServer(server)} asks for a token that is good elsewhere: "${printable(text)}"`,
    hint: `where whoever runs that agrees, say it yourself with ${flag}`,
  });
}

function isSameOrigin(one: string, other: string): boolean {
  return URL.parse(one)?.origin === new URL(other).origin;
}

function markOf({ server, issuer, clientId, audience, scopes }: LoginTerms): string {
  const told = JSON.stringify([server, issuer, clientId ?? null, audience ?? null, scopes.toSorted()]);
  return createHash('sha256').update(told).digest('base64url');
}
