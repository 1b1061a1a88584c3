import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import type { Log } from '@skep/core/log/log.ts';
import type { RemoteToken } from '../backend/backend.ts';
import type { Step } from '../call/chain.ts';
import { refuse } from '../call/refuse.ts';
import { idOf } from '../message/json-rpc.ts';

/**
 * The row `outgoing-token` in front of a server elsewhere that somebody has signed in to: calls are refused at once while
 * there is no token to show it. What the server wants to say about tokens is for the proxy, so no client is told to sign in.
 */
export function remoteToken({ token, advice }: RemoteToken, log: Log): Step {
  return async ({ res, incoming }, next) => {
    try {
      await token();
    } catch (error) {
      if (!(error instanceof SkepError)) throw error;
      const id = incoming && idOf(incoming.message);
      const isForPerson = error.code.startsWith('auth/') && !hasCode(error, 'auth/unavailable');
      if (isForPerson)
        refuse(res, 'proxy/remote-signed-out', { id, message: `not signed in to the server: ${advice}` });
      else {
        log.warn({ err: error }, 'there is no token for the server now');
        refuse(res, 'proxy/remote-retrying', { id });
      }
      return;
    }
    await next();
  };
}
