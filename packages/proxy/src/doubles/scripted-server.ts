import { PassThrough } from 'node:stream';
import type { StdioBackend, StdioStreams } from '../backend/backend.ts';

export type Received = Readonly<Record<string, unknown>> & {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
};

/** Decides what the server says to one message; undefined leaves it to the defaults. */
export type Script = (
  message: Received,
  server: Pick<ScriptedServer, 'say' | 'reply' | 'heard'>,
) => 'handled' | undefined;

export interface ScriptedServer {
  readonly backend: StdioBackend;
  /** Every message that arrived, parsed, oldest first; `lines` has their raw text. */
  readonly received: readonly Received[];
  readonly lines: readonly string[];
  /** Attach attempts so far. */
  readonly attaches: number;
  /** Makes the next attempts fail with these errors, in order. */
  readonly failAttach: (...errors: readonly Error[]) => void;
  /** Writes one line to stdout, as it is. */
  readonly say: (line: string) => void;
  readonly reply: (message: Received, result: unknown) => void;
  /** Resolves when a message for which `matches` holds has arrived, at once if it is there already. */
  readonly heard: (matches: (message: Received) => boolean) => Promise<Received>;
  /** Stdout ends, as when the process dies. */
  readonly crash: () => void;
}

export const INITIALIZED = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: { listChanged: true }, logging: {}, resources: { subscribe: true } },
  serverInfo: { name: 'scripted', version: '1.0.0' },
};

/** An MCP server over in-memory streams. It answers initialize, and echoes the params of everything else. */
export function scriptedServer(script: Script = () => undefined): ScriptedServer {
  const inbox = new Inbox();
  const failures: Error[] = [];
  let stdout: PassThrough | undefined;
  let attaches = 0;

  const connect = (): StdioStreams => {
    const stdin = new PassThrough();
    const mine = new PassThrough();
    stdout = mine;
    onLines(stdin, (line) => {
      const message = inbox.put(line);
      const handled = script(message, server) === 'handled';
      if (handled || message.id === undefined || message.method === undefined) return;
      const result = message.method === 'initialize' ? INITIALIZED : { echo: message.params ?? null };
      server.reply(message, result);
    });
    const close = (): void => {
      stdin.destroy();
      mine.destroy();
    };
    return { stdin, stdout: mine, close };
  };

  const server: ScriptedServer = {
    backend: {
      kind: 'stdio',
      attach() {
        attaches += 1;
        const failure = failures.shift();
        return failure === undefined ? Promise.resolve(connect()) : Promise.reject(failure);
      },
    },
    received: inbox.messages,
    lines: inbox.lines,
    get attaches() {
      return attaches;
    },
    failAttach: (...errors) => void failures.push(...errors),
    say: (line) => void stdout?.write(`${line}\n`),
    reply: ({ id }, result) => server.say(JSON.stringify({ jsonrpc: '2.0', id, result })),
    heard: (matches) => inbox.first(matches),
    crash: () => void stdout?.end(),
  };
  return server;
}

function onLines(stream: PassThrough, take: (line: string) => void): void {
  let rest = '';
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    const parts = (rest + chunk).split('\n');
    rest = parts.pop() ?? '';
    for (const line of parts) take(line);
  });
}

/** What has arrived. */
export class Inbox {
  readonly messages: Received[] = [];
  readonly lines: string[] = [];
  readonly #watchers = new Set<(message: Received) => void>();

  put(line: string): Received {
    const message: Received = JSON.parse(line);
    this.lines.push(line);
    this.messages.push(message);
    for (const watch of this.#watchers) watch(message);
    return message;
  }

  first(matches: (message: Received) => boolean): Promise<Received> {
    const earlier = this.messages.find(matches);
    if (earlier !== undefined) return Promise.resolve(earlier);
    return new Promise((resolve) => {
      const watch = (message: Received): void => {
        if (!matches(message)) return;
        this.#watchers.delete(watch);
        resolve(message);
      };
      this.#watchers.add(watch);
    });
  }
}
