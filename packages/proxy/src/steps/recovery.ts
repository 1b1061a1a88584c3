import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Log } from '@skep/core/log/log.ts';
import type { Step } from '../call/chain.ts';
import { refuse } from '../call/refuse.ts';

/** One failing request never ends the process: known errors are answered as their code says, others with a bare 500. */
export function recovery(log: Log): Step {
  return async (call, next) => {
    try {
      await next();
    } catch (error) {
      if (call.res.headersSent || call.res.destroyed) call.res.destroy();
      else if (error instanceof SkepError && error.code !== 'internal/bug') {
        refuse(call.res, error.code, { headers: call.req.complete ? {} : { Connection: 'close' } });
        return;
      } else {
        call.res.writeHead(500, { 'Content-Type': 'text/plain; charset=utf-8' }).end('Internal Server Error');
      }
      if (!call.req.destroyed) log.error({ err: error, path: call.path }, 'request failed');
    }
  };
}
