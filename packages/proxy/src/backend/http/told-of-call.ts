import type { IncomingMessage } from 'node:http';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Call } from '../../call/call.ts';
import { principalOf } from '../../call/principal.ts';
import type { Message } from '../../message/json-rpc.ts';
import { METHODS } from '../../message/methods.ts';

export function isHandshake(message: Message): boolean {
  return message.kind === 'request' && message.method === METHODS.initialize;
}

export function principalIn({ identity }: Call): string {
  if (identity === undefined) throw new SkepError('internal/bug');
  return principalOf(identity);
}

/** The session that a request names (MCP 2025-11-25, session management). */
export function sessionOf({ headers }: IncomingMessage): string | undefined {
  const id = headers['mcp-session-id'];
  return typeof id === 'string' ? id : undefined;
}

/** As clients may write an address in more than one way. */
export function keyOf(target: string): string {
  const there = URL.parse(`http://server.invalid${target}`);
  return there === null ? target : `${there.pathname}${there.search}`;
}
