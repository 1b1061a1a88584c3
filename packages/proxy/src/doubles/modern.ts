import { META } from '../message/envelope.ts';
import { openStream, postJson, type Answer, type Stream } from './http-client.ts';
import type { Received, Script } from './scripted-server.ts';

/** A request of a modern client: its body and the headers that go with it. */
export interface ModernRequest {
  readonly body: string;
  readonly headers: Record<string, string>;
}

type Params = Readonly<Record<string, unknown>>;

const BOTH = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };

/** `meta` goes into `_meta` beside the envelope, and in the place of it where a name is the same. */
export function modernRequest(
  method: string,
  params: Params = {},
  meta: Params = {},
  id: unknown = 1,
): ModernRequest {
  const _meta = { [META.version]: '2026-07-28', [META.capabilities]: {}, ...meta };
  const name = params['name'] ?? params['uri'];
  return {
    body: JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta } }),
    headers: {
      'MCP-Protocol-Version': '2026-07-28',
      'Mcp-Method': method,
      ...(typeof name === 'string' && { 'Mcp-Name': name }),
    },
  };
}

/** The answer to such a request. */
export function askModern(url: string, { body, headers }: ModernRequest): Promise<Answer> {
  return postJson(url, body, headers);
}

/** The stream that answers such a request. */
export function streamOf(url: string, { body, headers }: ModernRequest): Promise<Stream> {
  return openStream(url, { body, headers: { ...BOTH, ...headers } });
}

/** The next message of a stream. */
export async function nextOf(stream: Stream): Promise<Received> {
  const event = await stream.next();
  if (event === undefined) throw new TypeError('the stream has ended');
  return JSON.parse(event.data);
}

export const DISCOVERED = {
  resultType: 'complete',
  supportedVersions: ['2026-07-28'],
  capabilities: { tools: { listChanged: true }, resources: { subscribe: true }, logging: {} },
  instructions: 'be brief',
  _meta: { [META.serverInfo]: { name: 'modern', version: '2.0.0' } },
};

/** A server that knows the modern revision only; `script` may answer first. */
export function modernScript(script: Script = () => undefined): Script {
  return (message, server) => {
    if (script(message, server) === 'handled') return 'handled';
    const { id, method } = message;
    const isModern = Object.hasOwn(Object(message.params?.['_meta']), META.version);
    if (id === undefined || method === undefined) return 'handled';
    if (!isModern)
      server.say(
        JSON.stringify({
          jsonrpc: '2.0',
          id,
          error: { code: -32022, message: 'no', data: { supported: ['2026-07-28'] } },
        }),
      );
    else if (method === 'server/discover') server.reply(message, DISCOVERED);
    else if (method !== 'subscriptions/listen') return undefined;
    else
      server.say(
        JSON.stringify({
          jsonrpc: '2.0',
          method: 'notifications/subscriptions/acknowledged',
          params: {
            notifications: message.params?.['notifications'],
            _meta: { [META.subscriptionId]: id },
          },
        }),
      );
    return 'handled';
  };
}
