import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server, Socket } from 'node:net';
import type { Clock } from '@skep/core/time/clock.ts';
import { answerSocket, answerText, forwardRequest, forwardUpgrade, hasBody } from './forward-request.ts';
import { type Authority, inUrl, parseAuthority } from './host-name.ts';
import { joinJudged } from './join-judged.ts';
import type { Reach, Reached } from './reach.ts';
import type { Decision } from './decision.ts';
import { refusalText } from './refusal.ts';
import { serveHttp } from './serve-http.ts';

export interface ServeOptions {
  readonly workload: string;
  readonly reach: Reach;
  readonly clock: Clock;
}

/** Where a request goes, and its target in origin form (RFC 9112 §3.2.1). */
export interface Target {
  readonly asked: Authority;
  readonly path: string;
}

/**
 * Serves an HTTP/1.1 forward proxy (RFC 9110 §7.6, RFC 9112 §3.2.2): absolute-form requests for `http`, and `CONNECT`.
 * Every request is judged by itself, also on a connection that was used before.
 */
export function serveProxy(listener: Server, options: ServeOptions): void {
  const { workload, reach, clock } = options;
  serveHttp(
    listener,
    clock,
    {
      ...judgedRequests(options, 'proxy', proxiedTarget),
      async connect(req, socket, head) {
        const asked = parseAuthority(req.url ?? '');
        if (asked === undefined) return answerSocket(socket, 400, 'CONNECT needs a host and a port');
        const reached = await reach.open(asked, 'proxy');
        if (!('socket' in reached)) return answerSocket(socket, ...answerTo(workload, asked, reached));
        if (socket.destroyed) return destroy(reached.socket);
        socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
        await joinJudged({ client: socket, head, server: reached.socket, asked, via: 'proxy', reach, clock });
      },
    },
    true,
  );
}

/** What an HTTP service does with requests that `targetOf` reads the target of: judge, reach, forward. */
export function judgedRequests(
  { workload, reach }: ServeOptions,
  via: Decision['via'],
  targetOf: (req: IncomingMessage) => Target | undefined,
) {
  const open = async ({ asked }: Target) => reach.open(asked, via);
  return {
    async request(req: IncomingMessage, res: ServerResponse): Promise<void> {
      const target = targetOf(req);
      if (target === undefined) return answerText(res, 400, NOT_HERE);
      const reached = await open(target);
      if (!('socket' in reached)) return answerText(res, ...answerTo(workload, target.asked, reached));
      if (res.destroyed) return destroy(reached.socket);
      forwardRequest(req, res, onward(target, reached.socket));
    },
    async upgrade(req: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
      const target = targetOf(req);
      if (target === undefined || hasBody(req)) return answerSocket(socket, 400, NOT_HERE);
      const reached = await open(target);
      if (!('socket' in reached)) return answerSocket(socket, ...answerTo(workload, target.asked, reached));
      if (socket.destroyed) return destroy(reached.socket);
      forwardUpgrade(req, socket, head, onward(target, reached.socket));
    },
  };
}

const NOT_HERE = 'no http address can be read from this request';

function onward({ asked, path }: Target, socket: Socket) {
  const { host, port } = asked;
  return { socket, path, host: port === 80 ? inUrl(host) : `${inUrl(host)}:${port}` };
}

function answerTo(
  workload: string,
  asked: Authority,
  reached: Exclude<Reached, { socket: Socket }>,
): [number, string] {
  return 'denied' in reached ? [403, refusalText(workload, asked, reached.denied)] : [502, reached.failed];
}

/** An absolute URI wins over `Host` (RFC 9112 §3.2.2). */
function proxiedTarget({ url = '', method }: IncomingMessage): Target | undefined {
  const [, authority, rest = ''] =
    /^http:\/\/(?:[^/?#@]*@)?([^/?#@\\]+)([/?][^#]*)?(?:#.*)?$/i.exec(url) ?? [];
  const asked = authority === undefined ? undefined : parseAuthority(authority, 80);
  if (asked === undefined) return undefined;
  const whole = method === 'OPTIONS' ? '*' : '/';
  return { asked, path: rest === '' ? whole : rest.replace(/^\?/, '/?') };
}

function destroy(socket: Socket): void {
  socket.destroy();
}
