import { once } from 'node:events';
import { isIPv6 } from 'node:net';
import { acquireLock, unlessHeld, type Lock } from '@skep/core/files/lock.ts';
import type { Log } from '@skep/core/log/log.ts';
import { openLog } from '@skep/core/log/pino-log.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import type { Context } from '../cli/context.ts';
import { openHost } from '../cli/open-host.ts';
import { connectRuntime } from '../cli/open-runtime.ts';
import { loadAppConfig } from '../config/app-config.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { Spares } from '../runtime/spares.ts';
import { clearAddress, readAddress, supervisorLock, whatIsKept } from '../supervisor/address.ts';
import { collectAll, collectWhenIdle, eventLoopLoad } from '../supervisor/collect-when-idle.ts';
import { outliveFaults } from '../supervisor/faults.ts';
import { openFrontDoor } from '../supervisor/front-door.ts';
import type { Host } from '../supervisor/host.ts';
import { keepLogsSmall } from '../supervisor/log-keeper.ts';
import { identify } from '../supervisor/process-identity.ts';
import { openReadyWord } from '../supervisor/spawn-supervisor.ts';
import { resume } from '../supervisor/resume.ts';
import { serve } from '../supervisor/server.ts';

const LINGER_MS = 3_000;
/** How long one that ends may take to let go of its workloads. */
const LOCK_MS = 10_000;
const LOCK_TURN_MS = 250;
/** How long one that ends waits for an engine: shorter, with all else, than the next one waits. */
const RELEASE_MS = 7_000;
/** After its first start, when whoever asked for that has its answer. */
const KEEP_MS = 100;

/** The supervisor itself. Started by the other commands; one per state directory, held by a lock of the kernel. */
export const supervise = defineCommand({
  usage: 'skep supervise',
  summary: 'Host detached workloads until there are none',
  settings: [...commonSettings],
  async run({ values }, context) {
    const word = openReadyWord(context.env);
    try {
      const level = values.debug ? 'debug' : 'info';
      const log = await openLog({ level, fields: { pid: context.self.pid } });
      const lock = await becomeTheOne(context);
      if (lock) await host(lock, { context, log, onOpen: word.up });
      else word.up();
    } catch (error) {
      word.failed(error);
      throw error;
    }
  },
});

/** The supervisor's lock; undefined when another process is the supervisor, and lives. */
async function becomeTheOne({ places, uid, isAlive, signal, clock }: Context): Promise<Lock | undefined> {
  const deadline = clock.elapsed() + LOCK_MS;
  for (;;) {
    const lock = await tryLock({ places, signal }, LOCK_TURN_MS);
    if (lock) return lock;
    // One without an address has just begun, or is about to end.
    const other = readAddress(places, uid);
    if ((other && isAlive(other)) || clock.elapsed() > deadline) return undefined;
  }
}

function tryLock(
  { places, signal }: Pick<Context, 'places' | 'signal'>,
  waitMs: number,
): Promise<Lock | undefined> {
  return unlessHeld(acquireLock(supervisorLock(places), { waitMs, what: 'the supervisor', signal }));
}

interface Hosting {
  readonly context: Context;
  readonly log: Log;
  readonly onOpen: () => void;
}

async function host(first: Lock, { context: given, log, onOpen }: Hosting): Promise<void> {
  const context: Context = { ...given, spares: new Spares(given) };
  const { places, program, self, uid, platform, clock, isAlive, signal } = context;
  let lock = first;
  const ending = new AbortController();
  const both = AbortSignal.any([signal, ending.signal]);
  const endFaults = outliveFaults(context.onFault, log);
  const hosted: Host = openHost(context, log, { front: () => front.look() });
  const front = openFrontDoor({
    ...context,
    log,
    find: (name) => hosted.proxyOf(name),
    onOpen: () => void hosted.tellClients(),
    wanted: async () => (await loadAppConfig(places, context.env)).frontPort,
  });
  const housekeeping = [
    keepLogsSmall({ places, clock, signal: both, log }),
    collectWhenIdle({ clock, signal: both, load: eventLoopLoad(), collect: collectAll }),
    keepCompiledEarly(hosted, { ...context, signal: both }),
  ];
  try {
    log.info({ version: program.version }, 'supervisor started');
    const [watcher, kept] = [await soleWatcher(context), whatIsKept(places)];
    await clearAddress(places, uid);
    await serve({
      places,
      platform,
      uid,
      owner: { ...self, ...(watcher === undefined ? {} : { watcher }), state: kept.state },
      greeting: { skep: 'supervisor', version: program.version, ...self, ...kept },
      host: hosted,
      resume: await resume({ host: hosted, places, clock, isAlive, signal: both, log }),
      run: async (request, ways) => {
        const { runForCommand } = await import('./run-for-command.ts');
        const connect = (): Promise<Runtime> => connectRuntime(context, undefined);
        return runForCommand(request, ways, { context, host: hosted, connectRuntime: connect });
      },
      front: front.look,
      lingerMs: LINGER_MS,
      // Somebody may have removed the lock with its directory: it is made anew, unless another was faster.
      async isTheOne() {
        if (await lock.isValid()) return true;
        const again = await tryLock(context, 0);
        if (again) lock = again;
        return again !== undefined;
      },
      onOpen() {
        onOpen();
        // While the first client introduces itself: what carries out its request is loaded and connected then.
        connectRuntime(context, undefined).catch(() => {});
        // Before it listens, Node looks at the address with what it makes when it is first asked: 5 ms that a server would wait.
        isIPv6('::1');
      },
      signal: both,
      log,
    });
  } finally {
    ending.abort();
    await Promise.all(housekeeping);
    const inTime = await letGo(hosted, clock);
    await front.close();
    endFaults();
    log.info({ inTime }, 'supervisor ended');
    lock.release();
    // What still waits must not keep the process, nor do anything beside the next supervisor.
    if (!inTime) context.exit(0);
  }
}

/** What was compiled to host a workload is kept for the next supervisor: most are killed one day. Never rejects. */
async function keepCompiledEarly(
  { hosting }: Host,
  { clock, signal, keepCompiled }: Pick<Context, 'clock' | 'signal' | 'keepCompiled'>,
): Promise<void> {
  try {
    await Promise.race([hosting, once(signal, 'abort')]);
    await clock.sleep(KEEP_MS, signal);
    keepCompiled?.();
  } catch {
    // It ends.
  }
}

/** False when an engine does not answer; the next supervisor takes it up as after a crash. */
async function letGo(hosted: Host, clock: Clock): Promise<boolean> {
  const released = new AbortController();
  try {
    return await Promise.race([
      hosted.release().then(() => true),
      clock.sleep(RELEASE_MS, released.signal).then(() => false),
    ]);
  } finally {
    released.abort();
  }
}

/** This process's own watcher. That of the supervisor before it would start that one again, and is ended. */
async function soleWatcher({ env, places, uid, platform, isAlive, end }: Context) {
  const own = identify(Number(env['SKEP_WATCHER'] ?? 0), platform);
  const other = readAddress(places, uid)?.watcher;
  if (other && other.pid !== own?.pid && isAlive(other)) end(other.pid, 'SIGTERM');
  return own;
}
