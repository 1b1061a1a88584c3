import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import type { Context, Inside } from '../cli/context.ts';
import type { Terminal } from '@skep/core/command/terminal.ts';
import { run } from './run.ts';
import { permissionCard } from '../permissions/card.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { workloadUrl } from '../run-config/workload-url.ts';
import type { Host } from '../supervisor/host.ts';
import type { Endpoint } from '../supervisor/protocol.ts';
import type { RunOperation, RunWays } from '../supervisor/server.ts';
import { supervisorEnv, withAbsolutePaths } from '../supervisor/spawn-supervisor.ts';
import { asStarted } from '../run/tell-start.ts';
import { warnOpen } from '../run/launch-saved.ts';

/** What a supervisor runs commands with. */
export interface Supervisor {
  /** Its own. */
  readonly context: Context;
  readonly host: Pick<Host, 'start' | 'remove'>;
  /** The runtime there is, in the supervisor's own environment. */
  readonly connectRuntime: () => Promise<Runtime>;
}

/**
 * Carries out `skep run` in the supervisor, for a command that asked (decision 0048). Fails with
 * `supervisor/not-here`, having made nothing, where the command has to do it itself; else as the command would.
 */
export async function runForCommand(
  { argv, env, cwd }: RunOperation,
  { tell, signal }: RunWays,
  { context, host, connectRuntime }: Supervisor,
): Promise<Endpoint> {
  if (!haveSameSurroundings({ env, cwd }, context)) handOver('its environment differs');
  const terminal = { ...NO_TERMINAL, err: (text: string) => tell({ kind: 'told', text }) };
  let endpoint: Endpoint | undefined;
  const inside: Inside = {
    handOver,
    async launch(config, { runtime, movable, secrets }) {
      const { name } = config;
      const unheard = signal.aborted;
      warnOpen(config.host, terminal);
      const showCard = (shown: RunConfig): void => {
        const rows = permissionCard(shown).map(({ label, text, tone }) => ({ label, text, tone }));
        tell({ kind: 'card', rows });
      };
      showCard(config);
      tell({ kind: 'saved', name, url: workloadUrl(config) });
      try {
        endpoint = await host.start(name, { how: 'start', tell, signal, runtime, movable, secrets });
        showCard(asStarted(config, endpoint));
      } catch (error) {
        // Whoever waits removes what is left, or has the next supervisor start it.
        const waits = !signal.aborted || hasCode(signal.reason, 'supervisor/unreachable');
        if (unheard || !waits) await host.remove(name);
        throw error;
      }
    },
  };
  const asking = { ask: () => handOver('a value is missing'), confirm: () => handOver('it asks for rights') };
  try {
    const own = { env: withAbsolutePaths({ env, cwd }), cwd, terminal, inside, signal, connectRuntime };
    await run.execute(argv, { ...context, ...asking, ...own });
  } catch (error) {
    // What was cut short fails in its own way; the command has to know why it was cut.
    throw signal.aborted ? signal.reason : error;
  }
  return endpoint ?? handOver('it starts nothing');
}

const NO_TERMINAL: Omit<Terminal, 'err'> = {
  out: () => handOver('it prints something'),
  interactive: false,
  liveErr: false,
  liveOut: false,
  colorOut: false,
  colorErr: false,
  width: 100,
  widthOut: Infinity,
};

/** Both would start a supervisor with the same variables, and a process finds the same in its own. */
function haveSameSurroundings(
  one: Pick<Context, 'env' | 'cwd'>,
  other: Pick<Context, 'env' | 'cwd'>,
): boolean {
  const [ours, theirs] = [supervisorEnv(one), supervisorEnv(other)];
  const names = new Set([...Object.keys(ours), ...Object.keys(theirs)]);
  return [...names].every((name) => ours[name] === theirs[name]);
}

function handOver(why: string): never {
  throw new SkepError('supervisor/not-here', { message: why });
}
