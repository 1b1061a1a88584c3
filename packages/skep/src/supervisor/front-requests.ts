import type { RequestListener } from 'node:http';
import type { Log } from '@skep/core/log/log.ts';
import { newCall } from '@skep/proxy/call/call.ts';
import { compose, type Step } from '@skep/proxy/call/chain.ts';
import { recovery, refuse } from '@skep/proxy/call/refuse.ts';
import { readTarget } from '@skep/proxy/call/target.ts';
import type { Proxy, Serve } from '@skep/proxy/start.ts';
import { origin } from '@skep/proxy/steps/origin.ts';
import { readFrontTarget, rememberingFrontTargets } from './front-target.ts';
import { FRONT_DOOR_PATH } from './port-holder.ts';
import type { StatusWord } from './state.ts';

/** What answers for a workload that this process hosts. */
export type Answering = Pick<Proxy, 'behind'>;

export interface FrontRequestsOptions {
  /** Where the door listens. */
  readonly host: string;
  readonly port: number;
  /** What answers for exactly this name; undefined when nothing does. */
  readonly find: (name: string) => Answering | undefined;
  /** What is known of a workload that nothing answers for; undefined when there is none of that name. */
  readonly statusOf: (name: string) => Promise<StatusWord | undefined>;
  readonly pid: number;
  readonly log: Log;
}

/**
 * Hands each request to the proxy of the workload that its path names, in this process: the chain, its limits and
 * sessions are those of the workload's own port. What names none is answered here, for the door's own hosts and pages.
 */
export function frontRequests(options: FrontRequestsOptions): RequestListener {
  const { host, port, find, log } = options;
  const served = new WeakMap<Answering, Serve>();
  const readAsked = rememberingFrontTargets();
  const serveBy = (answering: Answering, name: string): Serve => {
    const serve = answering.behind({ host, port, prefix: `/${name}` });
    served.set(answering, serve);
    return serve;
  };
  const guard = [recovery(log), origin({ bindHost: host, port, allowedOrigins: [], isShared: true })];
  const answerHere = compose([...guard, answerForNobody(options)].map((run) => ({ run })));
  return (req, res) => {
    const asked = readAsked(req.url ?? '');
    const answering = asked && find(asked.name);
    if (asked && answering) {
      const serve = served.get(answering) ?? serveBy(answering, asked.name);
      serve(req, res, asked.target);
      return;
    }
    answerHere(newCall(req, res, readTarget(req.url ?? ''))).catch((error: unknown) => {
      log.error({ err: error }, 'an answer could not be written');
      res.destroy();
    });
  };
}

function answerForNobody({ statusOf, pid }: FrontRequestsOptions): Step {
  return async ({ req, res, path }) => {
    if (path.startsWith('/.well-known/')) {
      const isOurs = path === FRONT_DOOR_PATH && req.method === 'GET';
      const body = isOurs ? { skep: 'front-door', pid } : { error: 'not_found' };
      res.writeHead(isOurs ? 200 : 404, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
      return;
    }
    const asked = readFrontTarget(req.url ?? '');
    if (asked === undefined) return refuse(res, 'proxy/no-route');
    const { name } = asked;
    const status = await statusOf(name).catch((): StatusWord => 'error');
    if (status === undefined) {
      return refuse(res, 'front-door/no-workload', {
        message: `no workload is named "${name}"; skep list --all shows those that there are`,
      });
    }
    refuse(res, 'front-door/away', { message: whyAway(name, status) });
  };
}

function whyAway(name: string, status: StatusWord): string {
  if (status === 'starting') return `"${name}" is starting; try again in a moment`;
  if (status === 'running' || status === 'unhealthy')
    return `"${name}" is not served here; skep list shows the address that it has`;
  if (status === 'policy_stopped')
    return `"${name}" was stopped by policy; see why with: skep status ${name}`;
  return `"${name}" is not running; start it with: skep start ${name}`;
}
