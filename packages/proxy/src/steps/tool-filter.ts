import { findPath, splice } from '@skep/core/json/scan.ts';
import type { Call } from '../call/call.ts';
import type { Step } from '../call/chain.ts';
import { refuse, rpcFailure } from '../call/refuse.ts';
import { readBodyOnce } from '../message/body-message.ts';
import { errorOf, memberAt, type Message } from '../message/json-rpc.ts';
import type { Part } from './part.ts';
import { toolView, type ToolSettings, type ToolView } from './tool-view.ts';

const LIST = 'tools/list';
const CALL = 'tools/call';
const NAME = ['params', 'name'];

/** Fails as `toolView` does. */
export function openTools(settings: ToolSettings): Part {
  const view = toolView(settings);
  return { steps: { 'tool-filter': toolFilter(view), 'tool-call-filter': toolCallFilter(view) } };
}

/** The row `tool-filter`: answers to `tools/list`, and to nothing else, are shown as clients are to see them. */
export function toolFilter({ show }: ToolView): Step {
  return (call, next) => {
    call.replyHooks.push(({ message, request }) =>
      request?.method === LIST && message.kind === 'response' ? show(message) : message,
    );
    return next();
  };
}

/**
 * The row `tool-call-filter`: a call of a tool that clients do not have is answered as one of a tool that is not there, and
 * all later steps and the server see the server's own names. What is no call of a tool goes on untouched.
 */
export function toolCallFilter(view: ToolView): Step {
  return async (call, next) => {
    if (call.req.method === 'POST' && !(await withRealName(call, view))) return;
    await next();
  };
}

/** Resolves false when the call has been answered. */
async function withRealName(call: Call, { realName }: ToolView): Promise<boolean> {
  const { message } = (call.read = readBodyOnce(await call.readBody(), call.read));
  // What cannot be read is refused by the parser.
  if (typeof message === 'string' || message.kind === 'response' || message.method !== CALL) return true;
  const shown = memberAt(message.value, NAME);
  const span = findPath(message.text, NAME);
  if (span === undefined || typeof shown !== 'string' || shown === '')
    return refused(call, message, 'proxy/tool-unnamed');
  const real = realName(shown);
  if (real === undefined) return refused(call, message, 'proxy/tool-unknown');
  if (real === shown) return true;
  const renamed = Buffer.from(splice(message.text, [{ span, text: JSON.stringify(real) }]));
  call.readBody = (): Promise<Buffer> => Promise.resolve(renamed);
  // A modern client says the name twice, and both must agree (MCP 2026-07-28, Streamable HTTP).
  if (headerName(call) === shown)
    call.req.headers['mcp-name'] = `=?base64?${Buffer.from(real).toString('base64')}?=`;
  return true;
}

function refused(call: Call, message: Message, code: 'proxy/tool-unnamed' | 'proxy/tool-unknown'): false {
  // Nobody waits for an answer to a notification, so it is not one that says which tools there are.
  if (message.kind !== 'request') refuse(call.res, 'proxy/not-json-rpc');
  else if (code === 'proxy/tool-unnamed' || call.answerer === undefined)
    refuse(call.res, code, { id: message.id });
  else {
    const { id, method } = message;
    call.answerer.answer(call, { id, method }, errorOf(id, rpcFailure(code)));
  }
  return false;
}

/** Values outside visible ASCII travel as `=?base64?…?=`. */
function headerName({ req }: Call): string | undefined {
  const value = req.headers['mcp-name'];
  if (typeof value !== 'string') return undefined;
  const wrapped = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/u.exec(value.trim())?.[1];
  return wrapped === undefined ? value.trim() : Buffer.from(wrapped, 'base64').toString('utf8');
}
