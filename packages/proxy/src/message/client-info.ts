import { META } from './envelope.ts';
import { memberAt, type Message } from './json-rpc.ts';

/** Who a client says that it is: in its handshake, or with every message (MCP 2026-07-28). An object, or whatever stands there. */
export function clientInfoOf({ value }: Message): unknown {
  return memberAt(value, ['params', 'clientInfo']) ?? memberAt(value, ['params', '_meta', META.clientInfo]);
}
