import type { IncomingHttpHeaders } from 'node:http';
import type { Code } from '@skep/core/errors/codes.ts';
import { parseLossless } from '@skep/core/json/lossless.ts';
import { repeatedMember } from '@skep/core/json/scan.ts';
import type { Log } from '@skep/core/log/log.ts';
import { limitedLog } from '../backend/limited-log.ts';
import type { Call, Incoming } from '../call/call.ts';
import type { Step } from '../call/chain.ts';
import { clientAddress } from '../call/client-address.ts';
import { refuse } from '../call/refuse.ts';
import { eraOf } from '../message/era.ts';
import { idOf, memberAt, readMessage, type Message } from '../message/json-rpc.ts';
import { NAMED_PARAMETER } from '../message/methods.ts';
import type { Part, PartServices } from './part.ts';
import { toolView, type ToolSettings, type ToolView } from './tool-view.ts';
import { openWebhook, type Question, type Verdict, type Webhook } from './webhooks/ask-webhook.ts';
import { patchText, type PatchFault } from './webhooks/json-patch.ts';
import type { WebhookSettings, WebhooksSettings } from './webhooks/settings.ts';

/** Of a message, in bytes. */
const MAX_MESSAGE_BYTES = 1024 * 1024;

/** What clients hear of a change that cannot be made. */
const FAULTS: Readonly<Record<PatchFault | 'wrong-type' | 'no-request', string>> = {
  'wrong-type': 'Webhook patch type is not supported',
  malformed: 'Webhook patch is malformed',
  'out-of-scope': 'Webhook patch reaches beyond the request',
  'not-applicable': 'Webhook patch cannot be applied',
  'no-request': 'Webhook patch does not leave the same request',
};

interface Asking extends PartServices {
  /** What clients see of the tools; all where absent. */
  readonly tools: ToolView | undefined;
}

/**
 * The rows `mutating-webhook` and `validating-webhook` (docs/behaviour/proxy.md#webhooks). Reads the files of the settings;
 * fails as `openWebhook` and `toolView` do.
 */
export async function openWebhooks(
  settings: WebhooksSettings,
  tools: ToolSettings | undefined,
  services: PartServices,
): Promise<Part> {
  const log = limitedLog(services.log, services.clock);
  const asking: Asking = { ...services, log, tools: tools && toolView(tools) };
  const opened: Webhook[] = [];
  const close = (): void => {
    for (const webhook of opened) webhook.close();
    log.close();
  };
  const openAll = async (all: readonly WebhookSettings[]): Promise<readonly Webhook[]> => {
    const webhooks: Webhook[] = [];
    for (const one of all) webhooks.push(await openWebhook(one, services));
    opened.push(...webhooks);
    return webhooks;
  };
  try {
    const mutating = await openAll(settings.mutating);
    const validating = await openAll(settings.validating);
    return {
      steps: {
        ...(mutating.length > 0 && { 'mutating-webhook': mutatingStep(mutating, asking) }),
        ...(validating.length > 0 && { 'validating-webhook': validatingStep(validating, asking) }),
      },
      close,
    };
  } catch (error) {
    close();
    throw error;
  }
}

/** Every webhook has to allow what the ones that change it have made of the call. */
function validatingStep(webhooks: readonly Webhook[], asking: Asking): Step {
  return async (call, next) => {
    const incoming = askable(call);
    if (incoming === 'answered') return;
    if (incoming !== undefined) {
      for (const webhook of webhooks) {
        const verdict = await ask(webhook, questionOf(call, incoming.message, asking), asking.log);
        if (verdict.is === 'allowed' || (verdict.is === 'failed' && webhook.failurePolicy === 'ignore'))
          continue;
        refuseCall(call, 'proxy/webhook-denied');
        return;
      }
    }
    await next();
  };
}

/** Each webhook sees what the one before it has made of the call. */
function mutatingStep(webhooks: readonly Webhook[], asking: Asking): Step {
  return async (call, next) => {
    const incoming = askable(call);
    if (incoming === 'answered') return;
    if (incoming !== undefined) {
      for (const webhook of webhooks) if (!(await hasChanged(call, webhook, asking))) return;
    }
    await next();
  };
}

/** Lets one webhook change a call. Resolves false when the call has been answered. */
async function hasChanged(call: Call, webhook: Webhook, asking: Asking): Promise<boolean> {
  const { incoming } = call;
  if (incoming === undefined) return true;
  const verdict = await ask(webhook, questionOf(call, incoming.message, asking), asking.log);
  const fails = webhook.failurePolicy === 'fail';
  if (verdict.is === 'denied') {
    const code = verdict.unprocessable ? 'proxy/webhook-unprocessable' : 'proxy/webhook-refused';
    return refuseCall(call, code);
  }
  if (verdict.is === 'failed') return !fails || refuseCall(call, 'proxy/webhook-failed');
  const changed = changedBy(verdict, incoming, call.req.headers);
  if ('fault' in changed) {
    asking.log.warn(
      { webhook: webhook.name, fault: changed.fault },
      'the patch of a webhook was not applied',
    );
    return !fails || refuseCall(call, 'proxy/webhook-patch', FAULTS[changed.fault]);
  }
  return changed.message === incoming.message || takeOver(call, changed.message, incoming, asking);
}

type Changed = { readonly message: Message } | { readonly fault: keyof typeof FAULTS };

/** The message as the webhook wants it: the same request or notification, in the same revision. */
function changedBy(
  { patch, patchType }: Extract<Verdict, { is: 'allowed' }>,
  { message, era }: Incoming,
  headers: IncomingHttpHeaders,
): Changed {
  if (patch === undefined || patch === null) return { message };
  if (patchType !== 'json_patch') return { fault: 'wrong-type' };
  if (Array.isArray(patch) && patch.length === 0) return { message };
  const patched = patchText(message.text, patch);
  if ('fault' in patched) return patched;
  const changed = readMessage(patched.text);
  if (typeof changed === 'string' || changed.kind !== message.kind || !hasSameId(message, changed))
    return { fault: 'no-request' };
  return eraOf(headersFor(changed, headers), changed).era === era
    ? { message: changed }
    : { fault: 'no-request' };
}

function hasSameId(before: Message, after: Message): boolean {
  const [a, b] = [before, after].map((one) => idOf(one));
  const read = (id: string): string => JSON.stringify(parseLossless(id, { maxBytes: Infinity }));
  return a === b || (a !== undefined && b !== undefined && read(a) === read(b));
}

/** A modern client says method and name twice, and both must agree (MCP 2026-07-28, Streamable HTTP). */
function headersFor(message: Message, headers: IncomingHttpHeaders): IncomingHttpHeaders {
  if (headers['mcp-method'] === undefined || message.kind === 'response') return headers;
  const parameter = NAMED_PARAMETER.get(message.method);
  const name = parameter === undefined ? undefined : memberAt(message.value, ['params', parameter]);
  const { 'mcp-name': _name, ...others } = headers;
  const encoded = typeof name === 'string' ? Buffer.from(name).toString('base64') : undefined;
  return {
    ...others,
    'mcp-method': message.method,
    ...(encoded === undefined ? {} : { 'mcp-name': `=?base64?${encoded}?=` }),
  };
}

/** The later steps and the server see the changed message. False where it calls a tool that clients do not have. */
function takeOver(call: Call, message: Message, { era }: Incoming, { tools }: Asking): boolean {
  if (message.kind === 'request' && message.method === 'tools/call' && tools !== undefined) {
    const name = memberAt(message.value, ['params', 'name']);
    if (typeof name !== 'string' || !tools.offers(name)) return refuseCall(call, 'proxy/tool-unknown');
  }
  const { 'mcp-method': method, 'mcp-name': name } = headersFor(message, call.req.headers);
  for (const [header, value] of Object.entries({ 'mcp-method': method, 'mcp-name': name })) {
    if (value === undefined) delete call.req.headers[header];
    else call.req.headers[header] = value;
  }
  const body = Buffer.from(message.text);
  call.readBody = (): Promise<Buffer> => Promise.resolve(body);
  call.incoming = { message, era };
  call.isChanged = true;
  return true;
}

/** The message that webhooks are to judge; undefined where there is none, or the process that hosts the proxy asks. */
function askable(call: Call): Incoming | 'answered' | undefined {
  const { incoming } = call;
  if (incoming === undefined || incoming.message.kind === 'response' || call.isOwn) return undefined;
  const { text } = incoming.message;
  if (Buffer.byteLength(text) > MAX_MESSAGE_BYTES) {
    refuseCall(call, 'proxy/webhook-body');
    return 'answered';
  }
  // A webhook might read the one, and the server the other.
  if (repeatedMember(text) !== undefined) {
    refuseCall(call, 'proxy/repeated-member');
    return 'answered';
  }
  return incoming;
}

function questionOf(call: Call, { text }: Message, { trustProxyHeaders }: Asking): Question {
  return { text, identity: call.identity, sourceIp: clientAddress(call, trustProxyHeaders) };
}

/** What a webhook says goes to the log, and not to clients. */
async function ask(webhook: Webhook, question: Question, log: Log): Promise<Verdict> {
  const verdict = await webhook.ask(question);
  if (verdict.is === 'failed')
    log.warn({ webhook: webhook.name, why: verdict.why }, 'a webhook could not be asked');
  if (verdict.is === 'denied')
    log.info({ webhook: webhook.name, why: verdict.why }, 'a webhook denied a call');
  return verdict;
}

function refuseCall(call: Call, code: Code, message?: string): false {
  refuse(call.res, code, { id: call.incoming && idOf(call.incoming.message), message });
  return false;
}
