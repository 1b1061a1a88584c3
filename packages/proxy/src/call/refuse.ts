import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { CODES, type Code, type CodeRow } from '@skep/core/errors/codes.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Log } from '@skep/core/log/log.ts';
import { errorText, type JsonObject, type RpcFailure } from '../message/json-rpc.ts';
import type { Step } from './chain.ts';

export interface RefusalDetails {
  /** The request's id as raw JSON text, where there is a request and its id is known. */
  readonly id?: string | undefined;
  readonly data?: JsonObject | undefined;
  /** Instead of the row's title. */
  readonly message?: string | undefined;
  readonly headers?: OutgoingHttpHeaders;
}

/** JSON-RPC 2.0 §5.1, for conditions that have no JSON-RPC code of their own. */
const INTERNAL_ERROR = -32603;

/** Seconds; a server that ended is started again after five at the earliest (skep/supervisor/restart.ts). */
const RETRY_AFTER: Partial<Readonly<Record<Code, string>>> = {
  'proxy/busy': '1',
  'proxy/backend-away': '5',
  'proxy/session-store-away': '5',
  'proxy/remote-retrying': '10',
  'auth/unavailable': '10',
};

/** The JSON-RPC error that the row of `code` prescribes. */
export function rpcFailure(code: Code, details: RefusalDetails = {}): RpcFailure {
  const row: CodeRow = CODES[code];
  return {
    code: row.rpcCode ?? INTERNAL_ERROR,
    message: details.message ?? row.title,
    ...(details.data === undefined ? {} : { data: details.data }),
  };
}

/** Answers with the status and the body that the row of `code` prescribes: JSON-RPC if it has such a code, else text. */
export function refuse(res: ServerResponse, code: Code, details: RefusalDetails = {}): void {
  if (res.headersSent) return;
  const row: CodeRow = CODES[code];
  // Nobody hears it, but whoever watches the call tells it (watch-call.ts).
  res.statusCode = row.httpStatus;
  if (res.destroyed) return;
  const inRpc = row.rpcCode !== undefined;
  const body = inRpc ? errorText(details.id, rpcFailure(code, details)) : (details.message ?? row.title);
  res.writeHead(row.httpStatus, {
    'Content-Type': inRpc ? 'application/json' : 'text/plain; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    ...(RETRY_AFTER[code] === undefined ? {} : { 'Retry-After': RETRY_AFTER[code] }),
    ...details.headers,
  });
  res.end(body);
}

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
