import { isIP } from 'node:net';
import type { Call } from './call.ts';

/** The address that a call came from: the first that `X-Forwarded-For` names where that is trusted, else the TCP peer. */
export function clientAddress({ req }: Pick<Call, 'req'>, trustProxyHeaders: boolean): string {
  const forwarded = trustProxyHeaders ? req.headers['x-forwarded-for'] : undefined;
  const first =
    String(forwarded ?? '')
      .split(',', 1)[0]
      ?.trim() ?? '';
  return isIP(first) === 0 ? (req.socket.remoteAddress ?? 'unknown') : first;
}
