import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** The header that whoever hosts a proxy shows its pass in; it ends here, whoever sent it. */
export const PASS_HEADER = 'x-skep-pass';

/** What nobody else has. */
export function newPass(): string {
  return randomBytes(32).toString('base64url');
}

/** True for a request that shows `pass`. Takes what it shows away. */
export function takePass({ headers }: Pick<IncomingMessage, 'headers'>, pass: string): boolean {
  const shown = headers[PASS_HEADER];
  if (shown === undefined) return false;
  delete headers[PASS_HEADER];
  if (typeof shown !== 'string' || shown.length !== pass.length) return false;
  return timingSafeEqual(Buffer.from(shown, 'latin1'), Buffer.from(pass, 'latin1'));
}
