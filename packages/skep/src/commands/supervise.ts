import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { acquireLock } from '@skep/core/files/lock.ts';
import { hasCode } from '@skep/core/errors/skep-error.ts';
import { openLog } from '@skep/core/log/pino-log.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import { openHost } from '../cli/open-host.ts';
import { keepLogsSmall } from '../supervisor/log-keeper.ts';
import { resume } from '../supervisor/resume.ts';
import { serve } from '../supervisor/server.ts';

const LINGER_MS = 3_000;
const LOCK_MS = 10_000;

/** The supervisor itself (design §6). Started by the other commands; one per user, held by a lock of the kernel. */
export const supervise = defineCommand({
  usage: 'skep supervise',
  summary: 'Host detached workloads until there are none',
  settings: [...commonSettings],
  async run({ values }, context) {
    const { places, program, self, uid, clock, isAlive, signal } = context;
    const log = await openLog({ level: values.debug === true ? 'debug' : 'info', fields: { pid: self.pid } });
    await mkdir(dirname(places.supervisorSocket), { recursive: true, mode: 0o700 });
    const lock = await acquireLock(join(places.locksDir, 'supervisor.lock'), {
      waitMs: LOCK_MS,
      what: 'the supervisor',
      signal,
    }).catch((error: unknown) => {
      // Another supervisor does the work already; whoever started this one finds that one's socket.
      if (hasCode(error, 'file/locked')) return undefined;
      throw error;
    });
    if (!lock) return;
    const ending = new AbortController();
    const both = AbortSignal.any([signal, ending.signal]);
    const host = openHost(context, log);
    const logsKept = keepLogsSmall({ places, clock, signal: both, log });
    try {
      log.info({ version: program.version }, 'supervisor started');
      const resumed = await resume({ host, places, clock, isAlive, signal: both, log });
      const greeting = { skep: 'supervisor', version: program.version, ...self } as const;
      const socketPath = places.supervisorSocket;
      await serve({
        socketPath,
        uid,
        greeting,
        host,
        resume: resumed,
        lingerMs: LINGER_MS,
        signal: both,
        log,
      });
    } finally {
      ending.abort();
      await logsKept;
      await host.release();
      log.info({}, 'supervisor ended');
      lock.release();
    }
  },
});
