import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import type { WebhookSettings } from '../steps/webhooks/settings.ts';
import type { JsonObject } from '../message/json-rpc.ts';

/** What a receiver was asked. */
export interface Asked {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly said: JsonObject;
}

export interface WebhookReceiver extends AsyncDisposable {
  readonly asked: readonly Asked[];
  /** Of a webhook that asks here. */
  readonly settings: (more?: Partial<WebhookSettings>) => WebhookSettings;
}

/** What it answers: an object as JSON with 200, or whatever is done with the response. */
export type Answering = (asked: Asked) => object | ((res: ServerResponse) => void);

/** A webhook over plain HTTP that answers as scripted. */
export async function webhookReceiver(answering: Answering): Promise<WebhookReceiver> {
  const asked: Asked[] = [];
  const server = createServer((req, res) => {
    void text(req).then((body) => {
      const one: Asked = { headers: req.headers, body, said: JSON.parse(body) };
      asked.push(one);
      const answer = answering(one);
      if (typeof answer === 'function') answer(res);
      else res.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(answer));
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    asked,
    settings: (more = {}) => ({
      name: 'hook',
      url: `http://127.0.0.1:${port}/ask`,
      timeoutMs: 10_000,
      failurePolicy: 'fail',
      verify: false,
      ...more,
    }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
