import type { KeptSignIn } from '@skep/auth/sign-in/port.ts';
import type { Terminal } from '@skep/core/command/terminal.ts';
import { printable } from '@skep/core/terminal/printable.ts';

/** Says where the address of a document that was `given` as client id was not taken, and a client was registered instead (decision 0355). */
export function tellOtherClient(
  given: string | undefined,
  { issuer, client }: Pick<KeptSignIn, 'issuer' | 'client'>,
  terminal: Pick<Terminal, 'err'>,
): void {
  if (given === undefined || client.id === given) return;
  terminal.err(
    `${printable(`Note: ${issuer} does not take ${given} as a client, so Skep registered one there`)}\n`,
  );
}
