import { SkepError } from '@skep/core/errors/skep-error.ts';
import { printable } from '@skep/core/terminal/printable.ts';

export interface ConsentRequest {
  /** Who asks for it, for example `"com.example/x" of the catalogue`. */
  readonly who: string;
  /** What it asks for, a phrase each; see `grantsOf`. */
  readonly grants: readonly string[];
  /** How to agree without being asked. */
  readonly hint: string;
  /** Asks a person yes or no; absent where nobody can be asked. */
  readonly confirm: ((question: string) => Promise<boolean>) | undefined;
}

/** Whoever wrote a catalogue or a file must not decide what it gets of this machine. Fails with `run/not-granted`. */
export async function requireConsent({ who, grants, hint, confirm }: ConsentRequest): Promise<void> {
  if (grants.length === 0) return;
  const question = [`${who} asks to`, ...grants.map((grant) => `- ${grant}`)].map(printable).join('\n');
  if (confirm && (await confirm(`${question}\nAllow it?`))) return;
  throw new SkepError('run/not-granted', {
    message: `${who} asks to ${grants.join(', ')}, which is not granted`,
    hint,
  });
}
