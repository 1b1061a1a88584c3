import { CODES, type CodeRow } from './codes.ts';
import { SkepError } from './skep-error.ts';

export type RpcId = string | number;

export interface RpcError {
  readonly jsonrpc: '2.0';
  /** Echoed with its own type; absent when the request's id is unknown, never null. */
  readonly id?: RpcId;
  readonly error: { readonly code: number; readonly message: string };
}

/** JSON-RPC 2.0 §5.1 "Internal error", used where a row names no code of its own. */
const INTERNAL_ERROR = -32603;

/** The JSON-RPC error answer for a request. Anything but a SkepError becomes an internal error without its text. */
export function toRpc(error: unknown, id?: RpcId): RpcError {
  const known =
    error instanceof SkepError && error.code !== 'internal/bug' ? error : new SkepError('internal/bug');
  const row: CodeRow = CODES[known.code];
  return {
    jsonrpc: '2.0',
    ...(id === undefined ? {} : { id }),
    error: { code: row.rpcCode ?? INTERNAL_ERROR, message: known.message },
  };
}
