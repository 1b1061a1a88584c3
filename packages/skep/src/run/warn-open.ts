import { isLoopback } from '@skep/proxy/call/loopback.ts';
import type { Terminal } from '../print/terminal.ts';

/** Warns of a proxy that other machines reach: web pages are kept out on every address; programs are not. */
export function warnOpen(host: string, terminal: Pick<Terminal, 'err'>): void {
  if (isLoopback(host)) return;
  terminal.err(
    `Warning: listening on ${host}: whoever reaches this address from another machine can use the server without signing in\n`,
  );
}
